/**
 * `recommendModels` lists models that fit this machine, for `models recommend` and `setup`.
 *
 * Sources are the model store, the coordinator's catalogue, demand in the network, and downloads in the model repository.
 */
import { type CatalogueEntry, estimatedEarningsPerDay, type PublishedModels, publishedModels } from '../../account/published-models.js';
import type { ModelMemorySettings } from '../../config/model-memory.js';
import type { HostFacts } from '../../host/hardware/host-facts.js';
import { expectedModel } from '../../models/expected-model.js';
import { modelHash } from '../../models/file-hash.js';
import { knownModel } from '../../models/image/known-models.js';
import { slug } from '../../models/model-facts.js';
import {
  type ModelRepository,
  preferredVariant,
  readSource,
  repositoryEntries,
  type Variant,
  variantsOf,
} from '../../models/store/model-repository.js';
import { type FoundRepository, searchRepositories } from '../../models/store/model-search.js';
import type { ModelStore, StoredModel } from '../../models/store/model-store.js';
import { DownloadError } from '../../models/store/transfer.js';
import { rowOf } from '../commands/models/list.js';

export type Machine = Pick<HostFacts, 'chip' | 'memoryBytes' | 'bandwidthGbs'> & ModelMemorySettings;

export interface Recommendation {
  /** Id of a stored model, or a source for `models pull`. */
  readonly source: string;
  /** The operator lists the `catalogue`. A model in `demand` is served in the network; a `popular` one is downloaded most. */
  readonly origin: 'stored' | 'catalogue' | 'demand' | 'popular';
  readonly bytes: number;
  readonly tokensPerSecond: number | null;
  readonly vision: boolean;
  /** Micro-USD per day; null without demand data. */
  readonly earningsPerDay: number | null;
}

export interface Recommendations {
  /** Best first. */
  readonly models: readonly Recommendation[];
  /** Why earnings are unknown. Null if at least one is estimated. */
  readonly noDemand: string | null;
  /** Why downloads may be missing. Null if the model repository answered. */
  readonly repositoryProblem: string | null;
}

const MAX_MODELS = 10;
const MAX_CATALOGUED = 10;
const MAX_DEMANDED = 5;
const MAX_POPULAR = 12;
/** Maximum repositories to search for a demanded model. */
const MAX_PER_DEMANDED = 5;
const REPOSITORY_MS = 15_000;

interface Sources {
  readonly store: ModelStore;
  /** Null if none is set. */
  readonly coordinator: string | null;
  readonly modelRepository: ModelRepository;
}

/** Never rejects for a coordinator or model repository that does not answer. */
export async function recommendModels({ store, coordinator, modelRepository }: Sources, machine: Machine): Promise<Recommendations> {
  // The reader's time limit begins before the coordinator is asked.
  const repositories = new RepositoryReader(modelRepository);
  const published: PublishedModels =
    coordinator === null ? { catalogue: [], demand: new Map(), noDemand: 'no coordinator is set' } : await publishedModels(coordinator);
  const stored = store.entries();
  const candidates = await findCandidates(
    published,
    stored.map(({ id }) => id),
    repositories,
  );
  const downloads = await Promise.all(candidates.map((candidate) => downloadOf(candidate, published, repositories, machine)));
  const models = [
    ...stored.flatMap((entry) => storedRecommendation(entry, store, published, machine)),
    // A stored model is not downloaded a second time.
    ...downloads.flat().filter(({ source }) => !stored.some((entry) => entry.source === source)),
  ].sort((a, b) => (b.earningsPerDay ?? -1) - (a.earningsPerDay ?? -1));
  const isEstimated = models.some(({ earningsPerDay }) => earningsPerDay !== null);
  return {
    models: models.slice(0, MAX_MODELS),
    noDemand: isEstimated ? null : (published.noDemand ?? 'the network had no requests for these models in the last 24 hours'),
    repositoryProblem: repositories.problem,
  };
}

/** Answers are empty instead of errors. */
class RepositoryReader {
  /** Why an answer is missing, or null. */
  problem: string | null = null;
  readonly #signal = AbortSignal.timeout(REPOSITORY_MS);

  constructor(private readonly modelRepository: ModelRepository) {}

  search(text: string, max: number): Promise<FoundRepository[]> {
    return this.#orNone(searchRepositories(text, max, this.modelRepository, this.#signal));
  }

  async variants({ repository, quantization }: Pick<Candidate, 'repository' | 'quantization'>): Promise<Variant[]> {
    const request = repositoryEntries({ kind: 'repository', repository, quantization }, this.modelRepository, this.#signal);
    return variantsOf(repository, await this.#orNone(request));
  }

  async #orNone<Item>(request: Promise<Item[]>): Promise<Item[]> {
    try {
      return await request;
    } catch (error) {
      if (!(error instanceof DownloadError) && !this.#signal.aborted) throw error;
      this.problem ??= error instanceof DownloadError ? error.message : 'the model repository did not answer in time';
      return [];
    }
  }
}

interface Candidate {
  readonly repository: string;
  /** Null: the best that fits. */
  readonly quantization: string | null;
  readonly origin: 'catalogue' | 'demand' | 'popular';
}

/** Each repository once, by its first origin. */
async function findCandidates(
  published: PublishedModels,
  storedIds: readonly string[],
  repositories: RepositoryReader,
): Promise<Candidate[]> {
  const popular = repositories.search('', MAX_POPULAR);
  const demanded = [...published.demand]
    .filter(([id]) => !storedIds.includes(id))
    .sort(([, a], [, b]) => b.tokensPerDay * b.pricePerMillion - a.tokensPerDay * a.pricePerMillion)
    .slice(0, MAX_DEMANDED)
    .map(async ([id]) => {
      const found = await repositories.search(id.replaceAll('-', ' '), MAX_PER_DEMANDED);
      return found.filter(({ repository }) => idOfRepository(repository) === id);
    });
  const candidates: Candidate[] = [
    ...published.catalogue.flatMap(fromCatalogue).slice(0, MAX_CATALOGUED),
    ...(await Promise.all(demanded)).flat().map(({ repository }) => ({ repository, quantization: null, origin: 'demand' as const })),
    ...(await popular)
      .filter(({ isGated }) => !isGated)
      .map(({ repository }) => ({ repository, quantization: null, origin: 'popular' as const })),
  ];
  return candidates.filter(({ repository }, index) => candidates.findIndex((other) => other.repository === repository) === index);
}

/** Empty if nothing of the repository fits. */
async function downloadOf(
  candidate: Candidate,
  published: PublishedModels,
  repositories: RepositoryReader,
  machine: Machine,
): Promise<Recommendation[]> {
  const { repository, quantization, origin } = candidate;
  const variants = fittingVariants(repository, await repositories.variants(candidate), machine);
  const named = quantization === null ? variants : variants.filter((variant) => isNamed(variant, quantization));
  const variant = preferredVariant(named);
  return variant === null ? [] : [recommendation(variant, repository, origin, published, machine)];
}

/** Empty if the model does not fit. */
function storedRecommendation(entry: StoredModel, store: ModelStore, published: PublishedModels, machine: Machine): Recommendation[] {
  const { fits, vision, estimated_tokens_per_second: tokensPerSecond } = rowOf(entry, store, machine);
  const { id, bytes } = entry;
  const earningsPerDay = estimateEarnings(published, id, tokensPerSecond);
  return fits ? [{ source: id, origin: 'stored', bytes, tokensPerSecond, vision, earningsPerDay }] : [];
}

/** Quantizations of a text model that fit a machine. */
export function fittingVariants(repository: string, variants: readonly Variant[], machine: Machine): Variant[] {
  // The other parts of an image model are unknown before the download.
  if (knownModel(repository) !== null) return [];
  return variants.filter((variant) => expectedModel({ ...variant, name: repository }, machine).fits);
}

function recommendation(
  variant: Variant,
  repository: string,
  origin: Recommendation['origin'],
  published: PublishedModels,
  machine: Machine,
): Recommendation {
  const { source, bytes, projectorBytes } = variant;
  const { tokensPerSecond } = expectedModel({ ...variant, name: repository }, machine);
  const hashes = variant.sha256.flatMap((hash) => hash ?? []);
  const sha256 = hashes.length === variant.sha256.length ? modelHash(hashes) : null;
  const listed = published.catalogue.find(({ file_sha256 }) => file_sha256.some((hash) => hash === sha256));
  const id = listed?.id ?? [source.slice('hf:'.length), repository, idOfRepository(repository)].find((name) => published.demand.has(name));
  const vision = projectorBytes > 0;
  return {
    source,
    origin,
    bytes,
    tokensPerSecond,
    vision,
    earningsPerDay: id === undefined ? null : estimateEarnings(published, id, tokensPerSecond),
  };
}

function estimateEarnings({ demand }: PublishedModels, id: string, tokensPerSecond: number | null): number | null {
  const of = demand.get(id);
  return of === undefined || tokensPerSecond === null ? null : estimatedEarningsPerDay(of, tokensPerSecond);
}

/** Empty unless the entry's id names a repository. */
function fromCatalogue({ id }: CatalogueEntry): Candidate[] {
  if (!/^[A-Za-z0-9][\w.-]*\/[A-Za-z0-9][\w.-]*(?::[\w.-]+)?$/.test(id)) return [];
  const source = readSource(`hf:${id}`);
  return source.kind === 'repository' ? [{ repository: source.repository, quantization: source.quantization, origin: 'catalogue' }] : [];
}

function isNamed({ quantization }: Variant, name: string): boolean {
  return quantization?.toLowerCase() === name.toLowerCase();
}

/** Usual id after a pull: `qwen3-8b` of `unsloth/Qwen3-8B-GGUF`. */
function idOfRepository(repository: string): string {
  return slug((repository.split('/')[1] ?? '').replace(/[-_.]gguf$/i, ''));
}
