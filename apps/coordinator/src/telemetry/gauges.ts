/** `register…Gauges` register gauges whose values are read at each scrape. `EndedSessions` keeps totals of sessions from decreasing. */
import type { ImageStore } from '../images/image-store.js';
import type { ImageSupply } from '../inference/queue/image-supply.js';
import type { RequestQueue } from '../inference/queue/request-queue.js';
import type { ProviderRegistry } from '../providers/provider-registry.js';
import type { SessionCounters } from '../providers/session/session-options.js';
import { MAX_MODELS, type Metrics, OTHER, type Reading } from './metrics.js';

export class EndedSessions {
  readonly #sums = new Map<string, number>();

  add(counters: Readonly<SessionCounters>): void {
    for (const [name, value] of Object.entries(counters)) this.#sums.set(name, (this.#sums.get(name) ?? 0) + value);
  }

  /** Sums over closed and open sessions. */
  plus(openSessions: Iterable<Readonly<SessionCounters>>): ReadonlyMap<string, number> {
    const sums = new Map(this.#sums);
    for (const counters of openSessions) {
      for (const [name, value] of Object.entries(counters)) sums.set(name, (sums.get(name) ?? 0) + value);
    }
    return sums;
  }
}

/** Gauges of the memory for request bodies. Strangers are requests without a valid API key so far. */
export function registerBodyGauges(
  metrics: Metrics,
  bodies: {
    readonly heldBytes: number;
    readonly maxHeldBytes: number;
    readonly unauthenticatedHeldBytes: number;
    readonly maxUnauthenticatedHeldBytes: number;
    readonly overloadedCount: number;
  },
): void {
  metrics.gauge('request_bytes_held', 'Bytes of request bodies in memory.', [], () => [[{}, bodies.heldBytes]]);
  metrics.gauge('stranger_bytes_held', 'Bytes of unauthenticated requests in memory, connections included.', [], () => [
    [{}, bodies.unauthenticatedHeldBytes],
  ]);
  metrics.gauge('request_bodies_overloaded', 'Bodies refused for lack of memory since the start.', [], () => [
    [{}, bodies.overloadedCount],
  ]);
  metrics.gauge('request_bytes_limit', 'Maximum of request_bytes_held and of stranger_bytes_held.', ['of'], () => [
    [{ of: 'accounts' }, bodies.maxHeldBytes],
    [{ of: 'strangers' }, bodies.maxUnauthenticatedHeldBytes],
  ]);
}

export function registerProviderGauges(
  metrics: Metrics,
  registry: ProviderRegistry,
  requestQueue: RequestQueue,
  ended: EndedSessions,
): void {
  metrics.gauge('queue_length', 'Jobs in the request queue.', [], () => [[{}, requestQueue.waiting]]);
  metrics.gauge('provider_connections', 'Open provider sockets, registered or not.', [], () => [[{}, registry.connections]]);
  metrics.gauge('providers', 'Registered providers by trust level and status.', ['trust_level', 'status'], function* () {
    // Zeros keep the series when no provider is connected.
    for (const trust_level of ['hardware', 'self_signed', 'none']) yield [{ trust_level, status: 'online' }, 0];
    for (const { trust, status } of registry.snapshots()) yield [{ trust_level: trust.level ?? 'none', status }, 1];
  });
  metrics.gauge('provider_trust_parts', 'Registered providers by the state of each trust part.', ['part', 'state'], function* () {
    for (const { trust } of registry.snapshots()) for (const { name, state } of trust.parts) yield [{ part: name, state }, 1];
  });
  metrics.gauge('provider_slots', 'Slots of registered providers, and slots in use.', ['state'], function* () {
    for (const state of ['all', 'used']) yield [{ state }, 0];
    for (const { registration, usedSlots } of registry.snapshots()) {
      yield [{ state: 'all' }, registration.slots];
      yield [{ state: 'used' }, usedSlots];
    }
  });
  metrics.gauge(
    'provider_length_outliers',
    'Provider models with far more tokens per response than on other providers.',
    ['kind'],
    function* () {
      for (const { registration } of registry.snapshots()) {
        const { providerId } = registration.identity;
        for (const { length } of registry.placement.reports.answerLengths(providerId))
          if (length.outlier !== null) yield [{ kind: length.outlier }, 1];
      }
    },
  );
  metrics.gauge('model_providers', 'Providers of this coordinator that can get requests, by model.', ['model'], function* () {
    const models = registry.models.list().map(({ offer, providers }) => ({ id: offer.id, count: providers.length }));
    // Providers choose model names, so only the models with the most providers get their own label.
    models.sort((a, b) => b.count - a.count || (a.id < b.id ? -1 : 1));
    for (const [index, { id, count }] of models.entries()) yield [{ model: index < MAX_MODELS ? id : OTHER }, count];
  });
  metrics.gauge('models_served', 'Models that at least one provider serves.', [], () => [[{}, registry.models.list().length]]);
  metrics.gauge('provider_messages', 'Challenge answers and unexpected messages since the start, by kind.', ['kind'], function* () {
    const openSessions = [...registry.snapshots()].map(({ counters }) => counters);
    for (const [name, value] of ended.plus(openSessions))
      yield [{ kind: name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`) }, value];
  });
}

export function registerImageGauges(
  metrics: Metrics,
  store: Pick<ImageStore, 'usage' | 'maxBytes'>,
  supply: Pick<ImageSupply, 'waiting'>,
): void {
  metrics.gauge('image_store_bytes', 'Bytes of stored images, and bytes reserved for unfinished ones.', ['state'], () => [
    [{ state: 'stored' }, store.usage.bytes],
    [{ state: 'promised' }, store.usage.heldBytes],
  ]);
  metrics.gauge('image_store_limit_bytes', 'Maximum of image_store_bytes, all states together.', [], () => [[{}, store.maxBytes]]);
  metrics.gauge('image_store_images', 'Stored images.', [], () => [[{}, store.usage.images]]);
  metrics.gauge('image_queue_length', 'Requests waiting for an image provider.', [], () => [[{}, supply.waiting]]);
}

interface WriteBacklog {
  readonly rows: number;
  readonly maxRows: number;
}

/** Gauges of rows that wait to be written to the database. A queue at its maximum drops its oldest rows. */
export function registerBacklogGauges(metrics: Metrics, queues: Readonly<Record<string, { readonly backlog: WriteBacklog }>>): void {
  const read = (value: (backlog: WriteBacklog) => number) => () =>
    Object.entries(queues).map(([queue, { backlog }]): Reading<'queue'> => [{ queue }, value(backlog)]);
  metrics.gauge(
    'write_behind_rows',
    'Rows that wait to be written to the database.',
    ['queue'],
    read((backlog) => backlog.rows),
  );
  metrics.gauge(
    'write_behind_max_rows',
    'Maximum of write_behind_rows.',
    ['queue'],
    read((backlog) => backlog.maxRows),
  );
}

/** `certificates`: end of validity by name, in milliseconds since 1970. */
export function registerCertificateGauge(metrics: Metrics, certificates: Readonly<Record<string, number>>): void {
  metrics.gauge('certificate_expiry_timestamp_seconds', 'End of validity of configured certificates.', ['certificate'], () =>
    Object.entries(certificates).map(([certificate, at]): Reading<'certificate'> => [{ certificate }, at / 1000]),
  );
}

export function registerPasswordGauges(
  metrics: Metrics,
  hasher: { readonly runningCount: number },
  queue: { readonly waitingCount: number },
): void {
  metrics.gauge('password_hashes', 'Running password hashes, and waiting requests.', ['state'], () => [
    [{ state: 'running' }, hasher.runningCount],
    [{ state: 'waiting' }, queue.waitingCount],
  ]);
}
