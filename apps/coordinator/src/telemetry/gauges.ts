/** Gauges: values read at the moment of a scrape, with no counting in between. */
import type { ImageStore } from '../images/image-store.js';
import type { ImageSupply } from '../inference/queue/image-supply.js';
import type { RequestQueue } from '../inference/queue/request-queue.js';
import type { ProviderRegistry } from '../providers/provider-registry.js';
import type { SessionCounters } from '../providers/session/session-options.js';
import type { Metrics } from './metrics.js';

/** Counters of ended sessions, so that totals never fall. */
export class EndedSessions {
  readonly #sums = new Map<string, number>();

  add(counters: Readonly<SessionCounters>): void {
    for (const [name, value] of Object.entries(counters)) this.#sums.set(name, (this.#sums.get(name) ?? 0) + value);
  }

  /** Of ended and running sessions together. */
  with(running: Iterable<Readonly<SessionCounters>>): ReadonlyMap<string, number> {
    const sums = new Map(this.#sums);
    for (const counters of running) {
      for (const [name, value] of Object.entries(counters)) sums.set(name, (sums.get(name) ?? 0) + value);
    }
    return sums;
  }
}

/** In bytes. */
export function readBodies(metrics: Metrics, bodies: { readonly heldBytes: number; readonly unauthenticatedHeldBytes: number }): void {
  metrics.reading('request_bytes_held', 'Bytes of request bodies in memory.', [], () => [[{}, bodies.heldBytes]]);
  metrics.reading('stranger_bytes_held', 'Bytes of requests without an account in memory, with their connections.', [], () => [
    [{}, bodies.unauthenticatedHeldBytes],
  ]);
}

export function readFleet(metrics: Metrics, fleet: ProviderRegistry, requestQueue: RequestQueue, ended: EndedSessions): void {
  metrics.reading('queue_length', 'Requests that wait for a place on a provider.', [], () => [[{}, requestQueue.waiting]]);
  metrics.reading('provider_connections', 'Open sockets of providers, registered or not.', [], () => [[{}, fleet.connections]]);
  metrics.reading('providers', 'Registered providers by trust level and status.', ['trust_level', 'status'], function* () {
    for (const { trust, status } of fleet.snapshots()) yield [{ trust_level: trust.level ?? 'none', status }, 1];
  });
  metrics.reading(
    'provider_trust_parts',
    'Registered providers by the state of each part of their trust.',
    ['part', 'state'],
    function* () {
      for (const { trust } of fleet.snapshots()) for (const { name, state } of trust.parts) yield [{ part: name, state }, 1];
    },
  );
  metrics.reading('provider_slots', 'Places for jobs on registered providers, and those in use.', ['state'], function* () {
    for (const { registration, usedSlots } of fleet.snapshots()) {
      yield [{ state: 'all' }, registration.slots];
      yield [{ state: 'used' }, usedSlots];
    }
  });
  metrics.reading(
    'provider_length_outliers',
    'Models on providers whose answers count far more tokens than on others.',
    ['kind'],
    function* () {
      for (const { registration } of fleet.snapshots()) {
        const { providerId } = registration.identity;
        for (const { length } of fleet.placement.reports.answerLengths(providerId))
          if (length.outlier !== null) yield [{ kind: length.outlier }, 1];
      }
    },
  );
  metrics.reading('models_served', 'Models that at least one provider serves.', [], () => [[{}, fleet.models.list().length]]);
  metrics.reading('provider_messages', 'Answers to challenges and messages out of place since the start, by kind.', ['kind'], function* () {
    const running = [...fleet.snapshots()].map(({ counters }) => counters);
    for (const [name, value] of ended.with(running))
      yield [{ kind: name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`) }, value];
  });
}

export function readImages(metrics: Metrics, store: Pick<ImageStore, 'usage'>, supply: Pick<ImageSupply, 'waiting'>): void {
  metrics.reading(
    'image_store_bytes',
    'Bytes on the disk of images, and those that machines have sent of unfinished ones.',
    ['state'],
    () => [
      [{ state: 'stored' }, store.usage.bytes],
      [{ state: 'promised' }, store.usage.heldBytes],
    ],
  );
  metrics.reading('image_store_images', 'Images that can be fetched.', [], () => [[{}, store.usage.images]]);
  metrics.reading('image_queue_length', 'Requests that wait because no provider of images is here.', [], () => [[{}, supply.waiting]]);
}

export function readPasswords(metrics: Metrics, hasher: { readonly running: number }, queue: { readonly waiting: number }): void {
  metrics.reading('password_hashes', 'Password hashes that run, and requests that wait for one.', ['state'], () => [
    [{ state: 'running' }, hasher.running],
    [{ state: 'waiting' }, queue.waiting],
  ]);
}
