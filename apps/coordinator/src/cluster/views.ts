/**
 * `NetworkViews`: interface for routes that show the state of the whole network, such as all connected providers.
 *
 * A route defines a view with a function that renders this coordinator's part. In a cluster, `ClusterViews` adds the parts of peers.
 */
import type { Static, TSchema } from 'typebox';

/** Parts of all coordinators, this coordinator's first. Peers without a valid answer in time are missing. */
export type View<Query, Part> = (query: Query) => Promise<Part[]>;

/** Looks up something at this coordinator, then at peers. Null: not found at any coordinator that answers in time. */
export type Lookup<Query, Found> = (query: Query) => Promise<Found | null>;

/** Schemas of the messages between coordinators. */
export interface ViewSchemas<Query extends TSchema, Part extends TSchema> {
  readonly query: Query;
  readonly part: Part;
}

type Awaitable<T> = T | Promise<T>;

/** `name` identifies a view or lookup in messages. Received queries and parts are checked against the schemas. */
export interface NetworkViews {
  /** `render` returns the part of this coordinator, for local clients and for peers. */
  define<Query extends TSchema, Part extends TSchema>(
    name: string,
    schemas: ViewSchemas<Query, Part>,
    render: (query: Static<Query>) => Awaitable<Static<Part>>,
  ): View<Static<Query>, Static<Part>>;

  /** Like `define`, for an action that each call performs anew at every coordinator. The results are never reused. */
  defineAction<Query extends TSchema, Part extends TSchema>(
    name: string,
    schemas: ViewSchemas<Query, Part>,
    act: (query: Static<Query>) => Awaitable<Static<Part>>,
  ): View<Static<Query>, Static<Part>>;

  defineLookup<Query extends TSchema, Found extends TSchema>(
    name: string,
    schemas: ViewSchemas<Query, Found>,
    find: (query: Static<Query>) => Awaitable<Static<Found> | null>,
  ): Lookup<Static<Query>, Static<Found>>;
}

/** Views of a coordinator that runs alone. */
export const LOCAL_VIEWS: NetworkViews = {
  define: (_name, _schemas, render) => async (query) => [await render(query)],
  defineAction: (_name, _schemas, act) => async (query) => [await act(query)],
  defineLookup: (_name, _schemas, find) => async (query) => find(query),
};
