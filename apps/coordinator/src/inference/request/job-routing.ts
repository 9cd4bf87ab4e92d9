/** Converts a client's routing preferences (`provider`, `models`) to placement constraints, errors and response headers. */
import { type ApiError, apiError, COULD_NOT_PROCESS, type RequestParams, type RoutingPreferences } from '@inference/formats';
import { PROVIDER_ID_PATTERN, type ProviderId } from '@inference/protocol';
import { NO_FILTER, type ProviderFilter, type SortCriterion } from '@inference/scheduler';
import type { Price } from '../../billing/prices/price.js';
import type { ProviderConnection } from '../../providers/provider-connection.js';
import type { Placements } from '../placements.js';
import type { InputImages, JobRequest } from './job-request.js';

const PROVIDER_ID = new RegExp(PROVIDER_ID_PATTERN);

/** Routing preferences, with the named providers resolved to ids. */
export interface JobRouting {
  readonly preferences: RoutingPreferences;
  /** Providers of `provider.only`, connected or not. Null for any provider. */
  readonly only: ReadonlySet<ProviderId> | null;
  /** Providers of `provider.order` that are also in `only`, connected or not. */
  readonly order: readonly ProviderId[];
  readonly filter: ProviderFilter | null;
  readonly sort: SortCriterion | null;
}

/** A serial number in this member is claimed by several providers, and proven by none. */
export interface AmbiguousName {
  readonly ambiguous: 'provider.only' | 'provider.order';
}

export async function resolveRouting(
  preferences: RoutingPreferences,
  placements: Pick<Placements, 'resolveSerial'>,
): Promise<JobRouting | AmbiguousName> {
  const only = preferences.only === null ? null : await resolveNames(preferences.only, placements);
  if (only === 'ambiguous') return { ambiguous: 'provider.only' };
  const order = await resolveNames(preferences.order, placements);
  if (order === 'ambiguous') return { ambiguous: 'provider.order' };
  const { ignore, quantizations, sort } = preferences;
  const ignoredIds = new Set(ignore.filter(isProviderId));
  const ignoredSerials = new Set(ignore.filter((name) => !isProviderId(name)));
  return {
    preferences,
    only: only === null ? null : new Set(only),
    order: only === null ? order : order.filter((id) => only.includes(id)),
    filter:
      ignore.length === 0 && quantizations === null
        ? null
        : { ...NO_FILTER, ignoredIds, ignoredSerials, quantizations: quantizations === null ? null : new Set(quantizations) },
    // Sorting by price has no effect: all providers of a model cost the same.
    sort: sort === 'price' ? null : sort,
  };
}

/** Routing for a fallback model: restricted to agents that accept jobs for one. Earlier versions refuse them. */
export function fallbackRouting(routing: JobRouting | null): JobRouting | null {
  if (routing === null) return null;
  return { ...routing, filter: { ...NO_FILTER, ...routing.filter, servesFallbackModels: true } };
}

/** `filter`, restricted to providers that can generate `choices` outputs and read `images` images. */
export function capabilityFilter(filter: ProviderFilter | null, { choices, images }: Capabilities): ProviderFilter | null {
  if (choices === 1 && images === 0) return filter;
  return { ...NO_FILTER, ...filter, servesChoices: choices > 1, images };
}

interface Capabilities {
  readonly choices: number;
  readonly images: number;
}

/** Ids of the named providers, in the order of the names. Leaves out serial numbers for which `resolveSerial` returns null. */
async function resolveNames(names: readonly string[], placements: Pick<Placements, 'resolveSerial'>): Promise<ProviderId[] | 'ambiguous'> {
  const ids: ProviderId[] = [];
  for (const name of names) {
    const resolved = isProviderId(name) ? name : await placements.resolveSerial(name);
    if (resolved === 'ambiguous') return 'ambiguous';
    if (resolved !== null && !ids.includes(resolved)) ids.push(resolved);
  }
  return ids;
}

function isProviderId(name: string): name is ProviderId {
  return PROVIDER_ID.test(name);
}

interface PricedModel {
  readonly model: string;
  readonly price: Price;
  /** Whether the model is billed per image instead of per token. */
  readonly isForImages: boolean;
}

/** Error if the price of a model exceeds `provider.max_price`. */
export function maxPriceProblem(
  { model, price, isForImages }: PricedModel,
  { maxPrice }: Pick<RoutingPreferences, 'maxPrice'>,
): ApiError | null {
  if (maxPrice === null) return null;
  const limits = isForImages
    ? ([['image', maxPrice.perImage, price.perImage, 'image of 1024x1024 pixels']] as const)
    : ([
        ['prompt', maxPrice.promptPerMillion, price.promptPerMillion, 'million tokens'],
        ['completion', maxPrice.completionPerMillion, price.completionPerMillion, 'million tokens'],
      ] as const);
  for (const [name, limit, rate, unit] of limits) {
    if (limit === null || rate <= limit) continue;
    const message = `provider.max_price.${name} is below the price of the model ${model}: ${rate / 1_000_000} USD per ${unit}.`;
    return apiError('invalid_request', { param: `provider.max_price.${name}`, message });
  }
  return null;
}

/** Members of `provider` that can exclude all providers of a model. */
const SELECTING: ReadonlySet<string> = new Set(['only', 'ignore', 'order', 'quantizations']);

/** Error for a request that no connected provider suits: the preferences, the images or the number of choices rule out all. */
export function nothingMatches(
  { model, choices = 1 }: Pick<RequestParams, 'model' | 'choices'>,
  { routing, images }: { readonly routing: JobRouting | null; readonly images: Pick<InputImages, 'count' | 'fields'> | null },
): ApiError {
  const given = routing?.preferences.given ?? [];
  const members = given.filter((name) => SELECTING.has(name)).map((name) => `provider.${name}`);
  if (choices > 1 && members.length === 0) {
    const message = `No connected provider of the model ${model} generates several choices. Set n to 1.`;
    return apiError('provider_not_available', { param: 'n', message });
  }
  if (images !== null) {
    const read = images.count === 1 ? 'an image' : `${images.count} images`;
    const chosen = members.length === 0 ? '' : ` that matches ${members.join(', ')}`;
    const message = `No connected provider of the model ${model}${chosen} reads ${read}. Accept other providers, or leave images out.`;
    return apiError('provider_not_available', { param: members[0] ?? images.fields[0] ?? 'context.input_images', message });
  }
  const matches = `matches ${members.join(', ') || 'provider'}`;
  const message =
    choices > 1
      ? `No connected provider of the model ${model} both ${matches} and generates several choices. Set n to 1, or accept other providers.`
      : `No connected provider of the model ${model} ${matches}.`;
  return apiError('provider_not_available', { param: members[0] ?? 'provider', message });
}

/** Error for a request whose images none of the providers reads that the client named. Null if the client named none. */
export function namedWithoutVision({
  sealed,
  providerId,
  params: { providerSerial, routing },
  inputImages,
}: Pick<JobRequest, 'sealed' | 'providerId' | 'params' | 'inputImages'>): ApiError | null {
  const named = [
    ...(sealed === null ? [] : ['context.recipients']),
    ...(providerId === null ? [] : ['X-Inference-Provider-Id']),
    ...(providerSerial === null ? [] : ['provider_serial']),
    ...(routing === undefined || routing.only === null ? [] : ['provider.only']),
    ...(routing === undefined || routing.order.length === 0 || routing.allowsFallbacks ? [] : ['provider.order']),
  ];
  const [firstMember] = named;
  if (firstMember === undefined || inputImages === null) return null;
  const { count, fields } = inputImages;
  const param = fields[0] ?? 'context.input_images';
  const read = count === 1 ? 'an image' : `${count} images`;
  const message = `${param}: ${COULD_NOT_PROCESS} No provider that ${firstMember} names reads ${read} with this model.`;
  return apiError('unsupported_parameter', { param, message });
}

/** Result of routing, for the response headers. */
export interface Route {
  /** The model that answers. */
  readonly model: string;
  /** Log code of why the requested model did not answer. Null if the requested model answers. */
  readonly fallbackReason: string | null;
  readonly preferences: RoutingPreferences | null;
}

/** Headers that describe the routing. Empty without preferences. */
export function routeHeaders({ model, fallbackReason, preferences }: Route, provider: ProviderConnection): Record<string, string> {
  if (preferences === null) return {};
  const applied = preferences.given.map((name) => SHOWN_VALUES[name]?.(preferences, provider) ?? name);
  return {
    ...(applied.length === 0 ? {} : { 'X-Inference-Routing': applied.join(', ') }),
    ...(fallbackReason === null ? {} : { 'X-Inference-Fallback-Model': model, 'X-Inference-Fallback-Reason': fallbackReason }),
  };
}

/** Preferences whose applied value the header shows. */
const SHOWN_VALUES: Readonly<Record<string, (preferences: RoutingPreferences, provider: ProviderConnection) => string>> = {
  order: ({ order }, { registration: { identity } }) => {
    const position = order.findIndex((name) => name === identity.providerId || name === identity.attestation.serial_number);
    return position === -1 ? 'order=none' : `order=${position}`;
  },
  allow_fallbacks: ({ allowsFallbacks }) => `allow_fallbacks=${allowsFallbacks}`,
  min_trust: ({ minTrust }) => `min_trust=${minTrust}`,
  sort: ({ sort }) => `sort=${sort}`,
};
