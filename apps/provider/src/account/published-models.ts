/**
 * `publishedModels` reads the network's model catalogue, prices and statistics, and estimates demand and earnings per model.
 *
 * The network publishes no tokens per model, so each model's demand is estimated from the tokens that its providers generated.
 */
import { lazyValidator } from '@inference/protocol';
import Type, { type Static } from 'typebox';
import { CoordinatorError, requestCoordinator } from './coordinator-http.js';

const Count = Type.Integer({ minimum: 0 });
const Id = Type.String({ maxLength: 256 });
const rates = { prompt_per_million: Count, completion_per_million: Count };
const CatalogueSchema = Type.Object({
  data: Type.Array(
    Type.Object({
      id: Id,
      display_name: Id,
      quantization: Type.String({ maxLength: 64 }),
      min_memory_bytes: Type.Union([Count, Type.Null()]),
      file_sha256: Type.Array(Type.String({ maxLength: 64 })),
    }),
    { maxItems: 10_000 },
  ),
});
const PricesSchema = Type.Object({ data: Type.Array(Type.Object({ model: Id, ...rates }), { maxItems: 100_000 }) });
const StatsSchema = Type.Object({
  total_prompt_tokens: Count,
  total_completion_tokens: Count,
  providers: Type.Array(Type.Object({ decode_tps: Type.Number({ minimum: 0 }), tokens_generated: Count, models: Type.Array(Id) })),
});
const TotalsSchema = Type.Object({ tokens: Count });

const catalogueValidator = lazyValidator(CatalogueSchema);
const pricesValidator = lazyValidator(PricesSchema);
const statsValidator = lazyValidator(StatsSchema);
const totalsValidator = lazyValidator(TotalsSchema);

export type CatalogueEntry = Static<typeof CatalogueSchema>['data'][number];
export type NetworkStatistics = Static<typeof StatsSchema>;
type Price = Static<typeof PricesSchema>['data'][number];

export interface ModelDemand {
  /** Estimated prompt and completion tokens of the last 24 hours. */
  readonly tokensPerDay: number;
  /** Decode tokens per second of the model's providers, if known. */
  readonly speeds: readonly number[];
  readonly providerCount: number;
  /** Completion tokens / all tokens, from 0 to 1. */
  readonly completionShare: number;
  /** Micro-USD per million tokens, in the network's mix of prompt and completion. */
  readonly pricePerMillion: number;
}

export interface PublishedModels {
  readonly catalogue: readonly CatalogueEntry[];
  /** Key: model id. */
  readonly demand: ReadonlyMap<string, ModelDemand>;
  /** Reason why `demand` is empty; otherwise null. */
  readonly noDemand: string | null;
}

const ANSWER_TIMEOUT_MS = 10_000;

/** If the coordinator does not answer, resolves with empty members and a reason in `noDemand`. */
export async function publishedModels(coordinator: string): Promise<PublishedModels> {
  const read = async <Body>(path: string, validator: () => { Check(value: unknown): value is Body }): Promise<Body | null> => {
    try {
      const { status, value } = await requestCoordinator(coordinator, path, { ms: ANSWER_TIMEOUT_MS });
      return status === 200 && validator().Check(value) ? value : null;
    } catch (error) {
      if (error instanceof CoordinatorError) return null;
      throw error;
    }
  };
  const [catalogue, prices, stats, totals] = await Promise.all([
    read('/v1/catalogue', catalogueValidator),
    read('/v1/prices', pricesValidator),
    read('/v1/stats', statsValidator),
    read('/v1/network/totals?window=24h', totalsValidator),
  ]);
  const known = { catalogue: catalogue?.data ?? [] };
  if (prices === null || stats === null || totals === null)
    return { ...known, demand: new Map(), noDemand: 'the coordinator publishes no statistics or cannot be reached' };
  if (totals.tokens === 0) return { ...known, demand: new Map(), noDemand: 'the network served no requests in the last 24 hours' };
  return { ...known, demand: demandByModel(stats, prices.data, totals.tokens), noDemand: null };
}

/**
 * Estimates demand per model id.
 *
 * A provider's generated tokens are divided equally among its models. The network's tokens per day are divided in the same ratio.
 */
export function demandByModel(stats: NetworkStatistics, prices: readonly Price[], tokensPerDay: number): Map<string, ModelDemand> {
  const total = stats.total_prompt_tokens + stats.total_completion_tokens;
  const completionShare = total === 0 ? 0.5 : stats.total_completion_tokens / total;
  const models = prices.map((price) => {
    const providers = stats.providers.filter((provider) => provider.models.includes(price.model));
    const generated = providers.reduce((sum, provider) => sum + provider.tokens_generated / provider.models.length, 0);
    return { price, providers, generated };
  });
  const generatedByAll = models.reduce((sum, { generated }) => sum + generated, 0);
  return new Map(
    models.map(({ price, providers, generated }) => [
      price.model,
      {
        tokensPerDay: generatedByAll === 0 ? 0 : (tokensPerDay * generated) / generatedByAll,
        speeds: providers.map(({ decode_tps }) => decode_tps).filter((speed) => speed > 0),
        providerCount: providers.length,
        completionShare,
        pricePerMillion: price.prompt_per_million * (1 - completionShare) + price.completion_per_million * completionShare,
      },
    ]),
  );
}

const SECONDS_PER_DAY = 86_400;

/**
 * Estimates the earnings of one more machine with a model, in micro-USD per day before the network's fee.
 *
 * The machine's share of the demand is its speed / the sum of all speeds. The tokens that it can compute in a day are the limit.
 */
export function estimatedEarningsPerDay(demand: ModelDemand, tokensPerSecond: number): number {
  const { speeds, providerCount, completionShare, pricePerMillion, tokensPerDay } = demand;
  const others = speeds.reduce((sum, speed) => sum + speed, 0) + (providerCount - speeds.length) * tokensPerSecond;
  const share = tokensPerSecond / (others + tokensPerSecond);
  const max = completionShare === 0 ? Number.POSITIVE_INFINITY : (tokensPerSecond * SECONDS_PER_DAY) / completionShare;
  return Math.round((Math.min(tokensPerDay * share, max) * pricePerMillion) / 1e6);
}
