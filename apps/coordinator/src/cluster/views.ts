/**
 * Views of the whole network from the parts of each coordinator. A route defines how this coordinator renders its own part; the parts
 * of peers come over their links, checked against the same schema. A peer that does not answer in time is left out.
 */
import type { Static, TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import type { Peer, PeerStream } from './peer.js';

/** Reads the parts of all coordinators, the own one first. */
export type View<Query, Part> = (query: Query) => Promise<Part[]>;

export interface NetworkViews {
  /**
   * `name`: unique. `query` travels as JSON. `render` gives this coordinator's part, for own clients and for peers, and validates a
   * query of a peer itself.
   */
  define<Query, Schema extends TSchema>(
    name: string,
    schema: Schema,
    render: (query: Query) => Static<Schema> | Promise<Static<Schema>>,
  ): View<Query, Static<Schema>>;
}

/** Views of one coordinator without peers. */
export const LOCAL_VIEWS: NetworkViews = {
  define: (_name, _schema, render) => async (query) => [await render(query)],
};

/** Maximum time for a peer's part, in milliseconds. */
const PART_MS = 2000;
/** Maximum parts of one view in memory at once: requests that arrive together share one answer. */
const MAX_SHARED = 256;

export class ClusterViews implements NetworkViews {
  readonly #peers: () => readonly Peer[];
  readonly #renderers = new Map<string, (query: never) => unknown>();

  constructor(peers: () => readonly Peer[]) {
    this.#peers = peers;
  }

  define<Query, Schema extends TSchema>(
    name: string,
    schema: Schema,
    render: (query: Query) => Static<Schema> | Promise<Static<Schema>>,
  ): View<Query, Static<Schema>> {
    this.#renderers.set(name, render);
    const validator = Compile(schema);
    const running = new Map<string, Promise<Static<Schema>[]>>();
    const read = async (text: string, query: Query): Promise<Static<Schema>[]> => {
      const payload = Buffer.from(JSON.stringify({ name, query: query ?? null }));
      const ofPeers = this.#peers().map(async (peer) => {
        const answer = await readMessage(peer.openStream('view', payload), PART_MS);
        const part = answer === null ? null : parseJson(answer);
        return validator.Check(part) ? [part] : [];
      });
      try {
        const [own, parts] = await Promise.all([render(query), Promise.all(ofPeers)]);
        return [own, ...parts.flat()];
      } finally {
        running.delete(text);
      }
    };
    return (query) => {
      const text = JSON.stringify(query ?? null);
      const shared = running.get(text) ?? read(text, query);
      if (running.size < MAX_SHARED) running.set(text, shared);
      return shared;
    };
  }

  /** Serves a stream of kind `view`: one message with the own part; none for an unknown view. */
  async serve(stream: PeerStream, header: Uint8Array): Promise<void> {
    const part = await this.#part(header).catch(() => null);
    if (part !== null) stream.send(part, true);
    stream.close();
  }

  async #part(payload: Uint8Array): Promise<Uint8Array | null> {
    const request = parseJson(payload);
    const { name, query } = typeof request === 'object' && request !== null ? (request as { name?: unknown; query?: unknown }) : {};
    const render = typeof name === 'string' ? this.#renderers.get(name) : undefined;
    if (render === undefined) return null;
    return Buffer.from(JSON.stringify(await render(query as never)));
  }
}

/** The first message of a stream; null: it ended before, or no message came in time. */
function readMessage(stream: PeerStream, timeoutMs: number): Promise<Uint8Array | null> {
  return new Promise((resolve) => {
    const finish = (bytes: Uint8Array | null): void => {
      clearTimeout(timer);
      resolve(bytes);
    };
    const timer = setTimeout(() => {
      stream.abort('timeout');
      finish(null);
    }, timeoutMs);
    stream.listen({ message: (bytes) => finish(bytes), control: () => {}, drained: () => {}, closed: () => finish(null) });
  });
}

function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes).toString());
  } catch {
    return undefined;
  }
}
