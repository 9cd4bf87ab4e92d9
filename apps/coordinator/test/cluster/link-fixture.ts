import { seededRandom } from '../../../../test/support/seeded-random.js';
import type { LinkEvent } from '../../src/cluster/link/link-options.js';
import type { StreamEnd, StreamHandlers } from '../../src/cluster/link/link-stream.js';
import type { PeerLink } from '../../src/cluster/link/peer-link.js';
import { PeerLinks, type PeerLinksOptions } from '../../src/cluster/link/peer-links.js';
import { MemoryNetwork, type MemoryTransport } from './memory-network.js';
import { VirtualClock } from './virtual-clock.js';

export interface Node {
  readonly links: PeerLinks;
  readonly transport: MemoryTransport;
  readonly events: LinkEvent[];
  to(peer: string): PeerLink;
}

/** Links of several coordinators over a network in memory, on virtual time. */
export class LinkNetwork {
  readonly clock = new VirtualClock();
  readonly random: () => number;
  readonly network: MemoryNetwork;

  constructor(seed: number) {
    this.random = seededRandom(seed);
    this.network = new MemoryNetwork(this.clock, this.random);
  }

  start(self: string, options: Partial<PeerLinksOptions> = {}): Node {
    const transport = this.network.connect();
    const events: LinkEvent[] = [];
    const links = new PeerLinks({
      self,
      transport,
      clock: this.clock,
      randomEpoch: () => 1 + Math.floor(this.random() * (2 ** 48 - 2)),
      log: (event) => events.push(event),
      ...options,
    });
    return { links, transport, events, to: (peer) => links.link(peer) };
  }

  /** Advances virtual time until the condition is true. Throws after `ms`. */
  until(condition: () => boolean, ms = 60_000): void {
    this.clock.run(ms, condition);
    if (!condition()) throw new Error('the condition does not hold in time');
  }
}

/** Handlers that record everything. */
export class Recorder implements StreamHandlers {
  readonly messages: { readonly bytes: Buffer; readonly isText: boolean }[] = [];
  readonly controls: string[] = [];
  readonly ends: StreamEnd[] = [];
  drains = 0;

  onMessage(bytes: Uint8Array, isText: boolean): void {
    this.messages.push({ bytes: Buffer.from(bytes), isText });
  }

  onControl(bytes: Uint8Array): void {
    this.controls.push(Buffer.from(bytes).toString());
  }

  onDrain(): void {
    this.drains++;
  }

  onClosed(end: StreamEnd): void {
    this.ends.push(end);
  }

  get texts(): string[] {
    return this.messages.map(({ bytes }) => bytes.toString());
  }
}
