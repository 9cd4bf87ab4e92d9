/** Types of network-wide views. A route renders this coordinator's part; a cluster adds the parts of peers. */
import type { Static, TSchema } from 'typebox';

/** Reads the parts of all coordinators, this coordinator's first. Peers that do not answer in time are left out. */
export type View<Query, Part> = (query: Query) => Promise<Part[]>;

/** Finds something at this coordinator, else at a peer. Null: no coordinator that answers in time knows it. */
export type Lookup<Query, Found> = (query: Query) => Promise<Found | null>;

/** Schemas of the JSON between coordinators. */
export interface ViewSchemas<Query extends TSchema, Part extends TSchema> {
  readonly query: Query;
  readonly part: Part;
}

type Awaitable<T> = T | Promise<T>;

/** Names are unique among views and lookups. Both sides check what they receive against the schemas. */
export interface NetworkViews {
  /** `render` returns this coordinator's part, for its own clients and for peers. */
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

/** Views of one coordinator without peers. */
export const LOCAL_VIEWS: NetworkViews = {
  define: (_name, _schemas, render) => async (query) => [await render(query)],
  defineLookup: (_name, _schemas, find) => async (query) => find(query),
};
