/** `openModelAvailability` records periodically which models the network serves. In a cluster, one coordinator does so per period. */
import { ModelOfferSchema } from '@inference/protocol';
import Type from 'typebox';
import { ModelAvailabilityRepository } from '../database/model-availability-repository.js';
import { everyPeriod } from '../database/periodic-work.js';
import type { Database } from '../database/tables.js';
import { MAX_LISTED_MODELS } from '../providers/placement/listed-models.js';
import type { ProviderRegistry } from '../providers/provider-registry.js';
import type { ClusterServices } from './cluster.js';
import type { StartContext } from './start-context.js';

const CHECK_INTERVAL_MS = 60_000;

const ListedModelsSchema = Type.Array(ModelOfferSchema.properties.id, { maxItems: MAX_LISTED_MODELS });

interface AvailabilityDeps {
  readonly database: Database;
  readonly registry: Pick<ProviderRegistry, 'models'>;
  readonly views: ClusterServices['views'];
}

export interface ModelAvailability {
  readonly repository: ModelAvailabilityRepository;
  /** Ids of the models that the network serves now. */
  readonly readServed: () => Promise<ReadonlySet<string>>;
}

export function openModelAvailability(context: StartContext, { database, registry, views }: AvailabilityDeps): ModelAvailability {
  const { now, options, onWriteError: onError, disposal } = context;
  const repository = new ModelAvailabilityRepository(database);
  const readListed = views.define('listed-models', { query: Type.Null(), part: ListedModelsSchema }, () =>
    registry.models.listing().models.map(({ offer }) => offer.id),
  );
  const readServed = async () => new Set((await readListed(null)).flat());
  const check = async () => repository.record([...(await readServed())], now());
  const periodMs = options.availabilityCheckMs ?? CHECK_INTERVAL_MS;
  disposal.defer(everyPeriod({ database, name: 'check models', periodMs, work: check, onError }));
  return { repository, readServed };
}
