/**
 * `ClusterViews`: `NetworkViews` of a cluster. Combines this coordinator's part of a view with the parts that peers send on request.
 *
 * Under load, equal queries within a second get the cached parts of the first. Actions and lookups never use cached parts.
 */
import Type, { type Static, type TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import { encodeMessage, type MessageValidator, parseMessage } from './json-message.js';
import type { Peer, PeerStream } from './peer.js';
import { readBody, sendBody } from './stream-body.js';
import type { Lookup, NetworkViews, View, ViewSchemas } from './views.js';

const MAX_PART_BYTES = 256 * 1024 * 1024;
/** Queries to peers per second and view, above which parts of the last second are reused. */
const MAX_SENT_QUERIES_PER_SECOND = 20;
const MAX_REUSE_AGE_MS = 1000;
/** Maximum JSON size of the cached parts of all views. The parts of each view's newest query are cached even beyond this size. */
const MAX_CACHED_BYTES = 32 * 1024 * 1024;
/** Maximum concurrent queries per view. Further queries return only this coordinator's part. */
const MAX_RUNNING_QUERIES = 1000;

const viewRequest = Compile(Type.Object({ name: Type.String(), query: Type.Unknown() }));

type Renderer = (query: unknown) => unknown;

interface ClusterViewsOptions {
  readonly peers: () => readonly Peer[];
  /** Milliseconds; monotonic. */
  readonly now?: () => number;
}

export class ClusterViews implements NetworkViews {
  readonly #peers: () => readonly Peer[];
  readonly #now: () => number;
  readonly #renderers = new Map<string, Renderer>();
  readonly #cacheBudget = new CacheBudget();

  constructor({ peers, now = () => performance.now() }: ClusterViewsOptions) {
    this.#peers = peers;
    this.#now = now;
  }

  define<Query extends TSchema, Part extends TSchema>(
    name: string,
    schemas: ViewSchemas<Query, Part>,
    render: (query: Static<Query>) => Static<Part> | Promise<Static<Part>>,
  ): View<Static<Query>, Static<Part>> {
    this.#serveAs(name, schemas.query, render);
    const validator = Compile(schemas.part);
    const partsOfPeers = new SharedParts((payload) => this.#askPeers(payload, validator), this.#cacheBudget, this.#now);
    return async (query) => {
      const [own, parts] = await Promise.all([render(query), partsOfPeers.read(requestOf(name, query))]);
      return [own, ...parts];
    };
  }

  defineAction<Query extends TSchema, Part extends TSchema>(
    name: string,
    schemas: ViewSchemas<Query, Part>,
    act: (query: Static<Query>) => Static<Part> | Promise<Static<Part>>,
  ): View<Static<Query>, Static<Part>> {
    this.#serveAs(name, schemas.query, act);
    const validator = Compile(schemas.part);
    return async (query) => {
      const [own, { parts }] = await Promise.all([act(query), this.#askPeers(requestOf(name, query), validator)]);
      return [own, ...parts];
    };
  }

  defineLookup<Query extends TSchema, Found extends TSchema>(
    name: string,
    schemas: ViewSchemas<Query, Found>,
    find: (query: Static<Query>) => Static<Found> | null | Promise<Static<Found> | null>,
  ): Lookup<Static<Query>, Static<Found>> {
    this.#serveAs(name, schemas.query, find);
    const validator = Compile(schemas.part);
    return async (query) => {
      const own = await find(query);
      if (own !== null) return own;
      const payload = requestOf(name, query);
      return firstFound(this.#peers(), async (peer, signal) => (await askPeer(peer, payload, validator, signal))?.part ?? null);
    };
  }

  /** Serves a stream of kind `view` with this coordinator's part. Aborts the stream for an unknown view or an invalid query. */
  async serve(stream: PeerStream, header: Uint8Array): Promise<void> {
    const part = await this.#render(header).catch(() => null);
    if (part === null) stream.abort('failed');
    else await sendBody(stream, part);
  }

  async #askPeers<Part>(payload: Uint8Array, validator: MessageValidator<Part>): Promise<PeerParts<Part>> {
    const answers = await Promise.all(this.#peers().map((peer) => askPeer(peer, payload, validator)));
    const received = answers.filter((answer) => answer !== null);
    return { parts: received.map(({ part }) => part), bytes: received.reduce((sum, { bytes }) => sum + bytes, 0) };
  }

  #serveAs<Query extends TSchema>(name: string, schema: Query, render: (query: Static<Query>) => unknown): void {
    const validator = Compile(schema);
    this.#renderers.set(name, (query) => {
      if (!validator.Check(query)) throw new TypeError('invalid query');
      return render(query);
    });
  }

  async #render(header: Uint8Array): Promise<Uint8Array | null> {
    const request = parseMessage(header, viewRequest);
    const render = request === null ? undefined : this.#renderers.get(request.name);
    return render === undefined ? null : encodeMessage(await render(request?.query));
  }
}

/** Asks all peers at once and resolves to the first non-null answer, cancelling the others. Null: none of the peers gave one. */
export async function firstFound<T>(
  peers: readonly Peer[],
  ask: (peer: Peer, signal: AbortSignal) => Promise<T | null>,
): Promise<T | null> {
  const search = new AbortController();
  const answers = peers.map(async (peer) => {
    const found = await ask(peer, search.signal);
    if (found === null) throw new Error('not found');
    return found;
  });
  try {
    return await Promise.any(answers);
  } catch {
    return null;
  } finally {
    search.abort();
  }
}

/** Parts of peers. `bytes`: their JSON size. */
interface PeerParts<Part> {
  readonly parts: Part[];
  readonly bytes: number;
}

interface BudgetEntry {
  readonly view: object;
  readonly bytes: number;
  /** Called when the entry has left the budget. */
  readonly evict: () => void;
}

/**
 * Limits the total size of cached parts. A new entry evicts the oldest entries of its view, then the oldest ones of other views.
 *
 * The newest entry of each view is never evicted. Otherwise, two views with large parts would evict each other at every query.
 */
class CacheBudget {
  readonly #entries = new Set<BudgetEntry>();
  readonly #newest = new Map<object, BudgetEntry>();
  #bytes = 0;

  add(entry: BudgetEntry): void {
    this.#entries.add(entry);
    this.#newest.set(entry.view, entry);
    this.#bytes += entry.bytes;
    this.#evict(({ view }) => view === entry.view);
    this.#evict(({ view }) => view !== entry.view);
  }

  remove(entry: BudgetEntry): void {
    if (!this.#entries.delete(entry)) return;
    if (this.#newest.get(entry.view) === entry) this.#newest.delete(entry.view);
    this.#bytes -= entry.bytes;
    entry.evict();
  }

  #evict(mayEvict: (entry: BudgetEntry) => boolean): void {
    for (const oldest of this.#entries) {
      if (this.#bytes <= MAX_CACHED_BYTES) return;
      if (mayEvict(oldest) && this.#newest.get(oldest.view) !== oldest) this.remove(oldest);
    }
  }
}

/** The peers' parts of one view. Equal concurrent queries share one request to the peers; under load, later ones reuse its result. */
class SharedParts<Part> {
  readonly #request: (payload: Uint8Array) => Promise<PeerParts<Part>>;
  readonly #now: () => number;
  /** Key: query. */
  readonly #running = new Map<string, Promise<PeerParts<Part>>>();
  readonly #budget: CacheBudget;
  /** Cached parts by query. `at`: when the query was sent. */
  readonly #recent = new Map<string, PeerParts<Part> & BudgetEntry & { readonly at: number }>();
  #second = { at: Number.NEGATIVE_INFINITY, queryCount: 0 };

  constructor(ask: (payload: Uint8Array) => Promise<PeerParts<Part>>, budget: CacheBudget, now: () => number) {
    this.#request = ask;
    this.#budget = budget;
    this.#now = now;
  }

  async read(payload: Uint8Array): Promise<Part[]> {
    const text = Buffer.from(payload).toString();
    const shared = this.#running.get(text);
    if (shared !== undefined) return (await shared).parts;
    const now = this.#now();
    if (now - this.#second.at >= 1000) this.#second = { at: now, queryCount: 0 };
    const recent = this.#recent.get(text);
    const isBusy = this.#second.queryCount >= MAX_SENT_QUERIES_PER_SECOND;
    if (isBusy && recent !== undefined && now - recent.at < MAX_REUSE_AGE_MS) return recent.parts;
    if (this.#running.size >= MAX_RUNNING_QUERIES) return [];
    this.#second.queryCount++;
    const request = this.#request(payload);
    this.#running.set(text, request);
    try {
      const received = await request;
      this.#cache(text, now, received);
      return received.parts;
    } finally {
      this.#running.delete(text);
    }
  }

  #cache(text: string, at: number, received: PeerParts<Part>): void {
    const previous = this.#recent.get(text);
    if (previous !== undefined) this.#budget.remove(previous);
    const entry = { at, ...received, view: this, evict: () => void this.#recent.delete(text) };
    this.#recent.set(text, entry);
    this.#budget.add(entry);
    setTimeout(() => this.#budget.remove(entry), MAX_REUSE_AGE_MS).unref();
  }
}

function requestOf(name: string, query: unknown): Uint8Array {
  return encodeMessage({ name, query: query ?? null });
}

/** Requests a peer's part. Null: no answer in time, the answer violates the schema, or a lookup found nothing. */
async function askPeer<Part>(
  peer: Peer,
  payload: Uint8Array,
  validator: MessageValidator<Part>,
  signal?: AbortSignal,
): Promise<{ readonly part: Part; readonly bytes: number } | null> {
  const answer = await readBody(peer.openStream('view', payload), MAX_PART_BYTES, signal);
  const part = answer === null ? null : parseMessage(answer, validator);
  return answer === null || part === null ? null : { part, bytes: answer.length };
}
