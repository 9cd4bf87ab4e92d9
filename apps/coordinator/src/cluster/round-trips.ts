/** `RoundTrips`: measures the round-trip time of a request to each peer, for metrics. Includes delays of both event loops. */
import type { PeerLink } from './link/peer-link.js';
import type { PeerLinks } from './link/peer-links.js';

const INTERVAL_MS = 5000;
const TIMEOUT_MS = 3000;
const NOTHING = new Uint8Array(0);

export class RoundTrips {
  readonly #links: PeerLinks;
  readonly #now: () => number;
  readonly #latest = new Map<string, number>();
  readonly #timer: NodeJS.Timeout;

  constructor(links: PeerLinks, now: () => number = () => performance.now()) {
    this.#links = links;
    this.#now = now;
    links.onRequest('ping', () => NOTHING);
    this.#timer = setInterval(() => void this.measure(), INTERVAL_MS).unref();
  }

  /** Latest round trip by peer id, in milliseconds. Peers whose link was not up or whose last reply is missing are omitted. */
  get latest(): ReadonlyMap<string, number> {
    return this.#latest;
  }

  /** Measures all links now. */
  async measure(): Promise<void> {
    const up = [...this.#links.links.values()].filter(({ state }) => state === 'up');
    const peers = new Set(up.map(({ peer }) => peer));
    for (const peer of this.#latest.keys()) if (!peers.has(peer)) this.#latest.delete(peer);
    await Promise.all(up.map((link) => this.#measureOne(link)));
  }

  async #measureOne(link: PeerLink): Promise<void> {
    const sentAt = this.#now();
    try {
      await link.request('ping', NOTHING, { timeoutMs: TIMEOUT_MS });
      this.#latest.set(link.peer, this.#now() - sentAt);
    } catch {
      // Other gauges show the state of the link and its losses.
      this.#latest.delete(link.peer);
    }
  }

  close(): void {
    clearInterval(this.#timer);
  }
}
