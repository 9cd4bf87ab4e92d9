import type { ClusterTransport, MessageHandler } from '../../src/cluster/transport/cluster-transport.js';
import type { VirtualClock } from './virtual-clock.js';

/** Probabilities of faults per message. Tests may change the values while the network runs. */
export interface Faults {
  loss: number;
  duplicate: number;
  /** Probability that a message is delayed by up to `maxDelayMs` more, so that others overtake it. */
  reorder: number;
  delayMs: number;
  maxDelayMs: number;
}

/** NATS replacement in memory, on virtual time. Without faults, messages arrive in order after `delayMs`. */
export class MemoryNetwork {
  readonly faults: Faults = { loss: 0, duplicate: 0, reorder: 0, delayMs: 0.1, maxDelayMs: 50 };
  readonly transports: MemoryTransport[] = [];
  /** Maximum bytes per millisecond of each publisher. `onMessage` is called with every message. */
  bytesPerMs = Number.POSITIVE_INFINITY;
  onMessage: (subject: string, payload: Uint8Array) => void = () => {};
  readonly clock: VirtualClock;
  readonly #random: () => number;

  constructor(clock: VirtualClock, random: () => number) {
    this.clock = clock;
    this.#random = random;
  }

  connect(): MemoryTransport {
    const transport = new MemoryTransport(this);
    this.transports.push(transport);
    return transport;
  }

  /** Delivers bytes as if a client had published them. */
  inject(subject: string, payload: Uint8Array): void {
    for (const transport of this.transports) transport.deliver(subject, payload, false);
  }

  carry(from: MemoryTransport, subject: string, payload: Uint8Array, noRespondersTo: string | undefined, extraMs: number): void {
    this.onMessage(subject, payload);
    const copy = Uint8Array.from(payload);
    const { loss, duplicate, reorder, delayMs, maxDelayMs } = this.faults;
    const copies = (this.#random() < loss ? 0 : 1) + (this.#random() < duplicate ? 1 : 0);
    for (let each = 0; each < copies; each++) {
      const late = this.#random() < reorder ? this.#random() * maxDelayMs : 0;
      this.clock.setTimer(extraMs + delayMs + late, () => {
        const receivers = this.transports.filter((transport) => transport.subscribes(subject));
        for (const receiver of receivers) receiver.deliver(subject, copy, false);
        if (receivers.length === 0 && noRespondersTo !== undefined) from.deliver(noRespondersTo, new Uint8Array(0), true);
      });
    }
  }
}

export class MemoryTransport implements ClusterTransport {
  isConnected = true;
  readonly maxPayloadBytes = 1024 * 1024;
  bufferedBytes = 0;
  readonly #network: MemoryNetwork;
  readonly #subscriptions = new Set<{ readonly subject: string; readonly handler: MessageHandler }>();
  readonly #states = new Set<(isConnected: boolean) => void>();
  readonly #drains = new Set<() => void>();
  #busyUntil = 0;

  constructor(network: MemoryNetwork) {
    this.#network = network;
  }

  publish(subject: string, payload: Uint8Array, noRespondersTo?: string): boolean {
    if (!this.isConnected || payload.length > this.maxPayloadBytes) return false;
    const { clock, bytesPerMs } = this.#network;
    const start = Math.max(clock.now(), this.#busyUntil);
    this.#busyUntil = start + payload.length / bytesPerMs;
    if (bytesPerMs !== Number.POSITIVE_INFINITY) {
      this.bufferedBytes += payload.length;
      clock.setTimer(this.#busyUntil - clock.now(), () => {
        this.bufferedBytes -= payload.length;
        if (this.bufferedBytes === 0) for (const listener of this.#drains) listener();
      });
    }
    this.#network.carry(this, subject, payload, noRespondersTo, this.#busyUntil - clock.now());
    return true;
  }

  subscribe(subject: string, handler: MessageHandler): () => void {
    const subscription = { subject, handler };
    this.#subscriptions.add(subscription);
    return () => this.#subscriptions.delete(subscription);
  }

  onState(listener: (isConnected: boolean) => void): () => void {
    this.#states.add(listener);
    return () => this.#states.delete(listener);
  }

  onDrain(listener: () => void): () => void {
    this.#drains.add(listener);
    return () => this.#drains.delete(listener);
  }

  setConnected(isConnected: boolean): void {
    if (this.isConnected === isConnected) return;
    this.isConnected = isConnected;
    for (const listener of this.#states) listener(isConnected);
  }

  subscribes(subject: string): boolean {
    return this.isConnected && [...this.#subscriptions].some((subscription) => matches(subscription.subject, subject));
  }

  deliver(subject: string, payload: Uint8Array, isNoResponders: boolean): void {
    if (!this.isConnected) return;
    for (const subscription of [...this.#subscriptions]) {
      if (matches(subscription.subject, subject)) subscription.handler(subject, payload, isNoResponders);
    }
  }

  /** Simulates a crash of the process: no goodbye, no more messages. */
  kill(): void {
    this.isConnected = false;
    this.#subscriptions.clear();
    this.#states.clear();
    this.#drains.clear();
  }

  async close(): Promise<void> {
    this.kill();
  }
}

function matches(pattern: string, subject: string): boolean {
  const tokens = subject.split('.');
  return pattern.split('.').every((token, index, all) => {
    if (token === '>') return tokens.length > index;
    return (token === '*' || token === tokens[index]) && (index < all.length - 1 || tokens.length === all.length);
  });
}
