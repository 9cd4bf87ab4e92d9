/** `modelPart` and `demandOf` describe a model at this coordinator. `network…` functions combine the descriptions of all coordinators. */
import { ModelOfferSchema, ModelTypeSchema, type VisionOffer, VisionOfferSchema } from '@inference/protocol';
import Type, { type Static, type TSchema } from 'typebox';
import type { RequestQueue } from '../../inference/queue/request-queue.js';
import { MAX_LISTED_MODELS } from '../../providers/placement/listed-models.js';
import type { ServedModel } from '../../providers/placement/model-directory.js';
import type { ProviderRegistry } from '../../providers/provider-registry.js';

const count = Type.Integer({ minimum: 0 });
const nullable = <Schema extends TSchema>(schema: Schema) => Type.Union([schema, Type.Null()]);
const { id, display_name, quantization } = ModelOfferSchema.properties;

/** Maximum hashes of weights (model files) per model in a part. Hashes reported by the most providers are retained. */
const MAX_WEIGHTS_PER_PART = 64;
const MAX_SIZES = 1024;

/** A model at one coordinator, as sent to other coordinators. Also the combination of these parts. */
export const ModelPartSchema = Type.Object({
  id,
  model_type: ModelTypeSchema,
  quantization,
  display_name,
  first_seen_at: Type.Number({ minimum: 0, description: 'milliseconds since 1970' }),
  providers: count,
  attested: count,
  has_hardware_trust: Type.Boolean(),
  /** Providers with trust level `hardware`. Absent from coordinators of earlier versions. */
  hardware: Type.Optional(count),
  context_length: nullable(count),
  /** Whether a provider reports that the model writes think segments. Absent from coordinators of earlier versions. */
  thinks: Type.Optional(Type.Boolean()),
  weights: Type.Array(Type.Object({ sha256: Type.String({ maxLength: 64 }), provider_count: count }), { maxItems: MAX_WEIGHTS_PER_PART }),
  sizes: Type.Array(Type.String({ maxLength: 32 }), { maxItems: MAX_SIZES }),
  max_images: count,
  /** Image input limits over all providers with vision. Absent without such a provider, and from coordinators of earlier versions. */
  vision: Type.Optional(VisionOfferSchema),
});
export type ModelPart = Static<typeof ModelPartSchema>;
export const ModelPartsSchema = Type.Array(ModelPartSchema, { maxItems: MAX_LISTED_MODELS });

const wait = nullable(Type.Number({ minimum: 0, description: 'milliseconds; null: unknown' }));
export const DemandSchema = Type.Object({
  slots: count,
  hardware_slots: count,
  requests_last_5_minutes: count,
  waiting_requests: count,
  expected_wait_ms: wait,
  hardware_expected_wait_ms: wait,
});
export type Demand = Static<typeof DemandSchema>;

/** `model` is null if no provider of the coordinator serves the model. The coordinator's clients may still wait for it. */
export const ModelDemandSchema = Type.Object({ model: nullable(ModelPartSchema), demand: DemandSchema });

export function modelPart({ offer, providers, firstSeenAt }: ServedModel, registry: ProviderRegistry): ModelPart {
  const images = providers.flatMap((provider) => (provider.offer?.model_type === 'image' ? (provider.offer.image ?? []) : []));
  const visions = providers.flatMap((provider) => (provider.offer?.model_type === 'text' ? (provider.offer.vision ?? []) : []));
  return {
    id: offer.id,
    model_type: offer.model_type,
    quantization: offer.quantization,
    display_name: offer.display_name,
    first_seen_at: firstSeenAt,
    providers: providers.length,
    attested: providers.filter(({ isAttested }) => isAttested).length,
    has_hardware_trust: providers.some(({ trustLevel }) => trustLevel === 'hardware'),
    hardware: providers.filter(({ trustLevel }) => trustLevel === 'hardware').length,
    context_length: registry.models.contextLength(offer.id, null),
    thinks: providers.some((provider) => provider.offer?.thinks === true),
    weights: byCount(providers.flatMap((provider) => provider.offer?.file_sha256 ?? []).map((sha256) => ({ sha256, provider_count: 1 }))),
    sizes: [...new Set(images.flatMap(({ sizes }) => sizes))].slice(0, MAX_SIZES),
    max_images: Math.max(0, ...images.map(({ max_images }) => max_images)),
    ...visionMember(visions),
  };
}

function visionMember(offers: readonly VisionOffer[]): Pick<ModelPart, 'vision'> {
  if (offers.length === 0) return {};
  return {
    vision: {
      max_images: Math.max(...offers.map(({ max_images }) => max_images)),
      max_image_tokens: Math.max(...offers.map(({ max_image_tokens }) => max_image_tokens)),
    },
  };
}

export function demandOf(model: string, registry: ProviderRegistry, requestQueue: RequestQueue): Demand {
  return {
    slots: registry.models.slotCount(model),
    hardware_slots: registry.models.slotCount(model, { providerSerial: null, trustFloor: 'hardware' }),
    requests_last_5_minutes: registry.placement.reports.recentRequests(model),
    waiting_requests: requestQueue.waitingOfOwnClients(model),
    expected_wait_ms: requestQueue.outlook(model).waitMs,
    hardware_expected_wait_ms: requestQueue.outlook(model, 'hardware').waitMs,
  };
}

/** Combines the parts of all coordinators into one list, sorted by id. Above the maximum, models with the most providers are retained. */
export function networkModels(parts: readonly (readonly ModelPart[])[]): readonly ModelPart[] {
  if (parts.length === 1 && parts[0] !== undefined) return parts[0];
  const byId = new Map<string, ModelPart[]>();
  for (const part of parts.flat()) byId.set(part.id, [...(byId.get(part.id) ?? []), part]);
  const models = [...byId.values()].flatMap((parts) => networkModel(parts) ?? []);
  if (models.length > MAX_LISTED_MODELS) models.sort((a, b) => b.providers - a.providers || (a.id < b.id ? -1 : 1));
  return models.slice(0, MAX_LISTED_MODELS).sort((a, b) => (a.id < b.id ? -1 : 1));
}

/** Combines the parts about one model. Returns null without parts. */
export function networkModel(parts: readonly ModelPart[]): ModelPart | null {
  const [first] = parts;
  if (first === undefined) return null;
  if (parts.length === 1) return first;
  const { vision: _, ...members } = first;
  const contexts = parts.flatMap(({ context_length }) => context_length ?? []);
  return {
    ...members,
    first_seen_at: Math.min(...parts.map(({ first_seen_at }) => first_seen_at)),
    providers: sum(parts.map(({ providers }) => providers)),
    attested: sum(parts.map(({ attested }) => attested)),
    has_hardware_trust: parts.some(({ has_hardware_trust }) => has_hardware_trust),
    // Coordinators of earlier versions report only whether there is such a provider.
    hardware: sum(parts.map(({ hardware, has_hardware_trust }) => hardware ?? Number(has_hardware_trust))),
    context_length: contexts.length === 0 ? null : Math.max(...contexts),
    thinks: parts.some(({ thinks }) => thinks === true),
    weights: byCount(parts.flatMap(({ weights }) => weights)),
    sizes: [...new Set(parts.flatMap(({ sizes }) => sizes))].slice(0, MAX_SIZES),
    max_images: Math.max(...parts.map(({ max_images }) => max_images)),
    ...visionMember(parts.flatMap(({ vision }) => vision ?? [])),
  };
}

export function networkDemand(parts: readonly Demand[]): Demand {
  const total = (of: (part: Demand) => number): number => sum(parts.map(of));
  return {
    slots: total(({ slots }) => slots),
    hardware_slots: total(({ hardware_slots }) => hardware_slots),
    requests_last_5_minutes: total(({ requests_last_5_minutes }) => requests_last_5_minutes),
    waiting_requests: total(({ waiting_requests }) => waiting_requests),
    expected_wait_ms: shortestWait(parts.map(({ expected_wait_ms }) => expected_wait_ms)),
    hardware_expected_wait_ms: shortestWait(parts.map(({ hardware_expected_wait_ms }) => hardware_expected_wait_ms)),
  };
}

/** Shortest wait in whole milliseconds. Null without any estimate. */
export function shortestWait(waits: readonly (number | null)[]): number | null {
  const known = waits.flatMap((ms) => ms ?? []);
  return known.length === 0 ? null : Math.round(Math.min(...known));
}

type Weights = ModelPart['weights'];

/** Adds up the counts of equal hashes. Sorted by descending count, up to the maximum. */
function byCount(entries: Weights): Weights {
  const counts = new Map<string, number>();
  for (const { sha256, provider_count } of entries) counts.set(sha256, (counts.get(sha256) ?? 0) + provider_count);
  const weights = [...counts].map(([sha256, provider_count]) => ({ sha256, provider_count }));
  weights.sort((a, b) => b.provider_count - a.provider_count || (a.sha256 < b.sha256 ? -1 : 1));
  return weights.slice(0, MAX_WEIGHTS_PER_PART);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
