/**
 * `NetworkViews`: interface for routes that show facts of the whole network, such as all connected providers.
 *
 * A route defines how this coordinator's part is rendered. With peers, `ClusterViews` adds their parts.
 */
import type { Static, TSchema } from 'typebox';

/** Reads the parts of all coordinators, starting with this coordinator. Omits peers that do not answer in time. */
export type View<Query, Part> = (query: Query) => Promise<Part[]>;

/** Looks up something at this coordinator, then at peers. Null: not found at any coordinator that answers in time. */
export type Lookup<Query, Found> = (query: Query) => Promise<Found | null>;

/** Schemas of the messages between coordinators. */
export interface ViewSchemas<Query extends TSchema, Part extends TSchema> {
  readonly query: Query;
  readonly part: Part;
}

type Awaitable<T> = T | Promise<T>;

/** Each name belongs to one view or lookup. Received queries and parts are checked against the schemas. */
export interface NetworkViews {
  /** `render` returns the part of this coordinator, for local clients and for peers. */
  define<Query extends TSchema, Part extends TSchema>(
    name: string,
    schemas: ViewSchemas<Query, Part>,
    render: (query: Static<Query>) => Awaitable<Static<Part>>,
  ): View<Static<Query>, Static<Part>>;

  defineLookup<Query extends TSchema, Found extends TSchema>(
    name: string,
    schemas: ViewSchemas<Query, Found>,
    find: (query: Static<Query>) => Awaitable<Static<Found> | null>,
  ): Lookup<Static<Query>, Static<Found>>;
}

/** Views of a coordinator without peers. */
export const LOCAL_VIEWS: NetworkViews = {
  define: (_name, _schemas, render) => async (query) => [await render(query)],
  defineLookup: (_name, _schemas, find) => async (query) => find(query),
};
