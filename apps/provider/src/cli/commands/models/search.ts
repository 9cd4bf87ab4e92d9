/** `models search`: downloadable models by name, with size, fit and estimated speed on this machine. */
import { configPath } from '../../../config/data-dir.js';
import { modelMemorySettings } from '../../../config/model-memory.js';
import { readConfig } from '../../../config/read-config.js';
import { readHostFacts } from '../../../host/hardware/host-facts.js';
import { byteSizeText } from '../../../models/byte-size-text.js';
import { expectedModel } from '../../../models/expected-model.js';
import { knownModel } from '../../../models/image/known-models.js';
import {
  type ModelRepository,
  modelRepositoryOf,
  preferredVariant,
  repositoryEntries,
  type Variant,
  variantsOf,
} from '../../../models/store/model-repository.js';
import { type FoundRepository, searchRepositories } from '../../../models/store/model-search.js';
import { DownloadError } from '../../../models/store/transfer.js';
import type { Command } from '../../command.js';
import { EXIT } from '../../exit-codes.js';
import { abortOnInterrupt } from '../../input/interrupt.js';
import { ownerOptions, UsageError } from '../../input/owner-options.js';
import { withErrorText } from '../../models-command.js';
import { clean, print } from '../../output/terminal.js';
import { modelRow, speedText, visionText } from '../../recommendation/recommendation-text.js';
import { fittingVariants, type Machine } from '../../recommendation/recommendations.js';

const MAX_RESULTS = 50;
const DEFAULT_RESULTS = 10;

export const modelsSearchCommand: Command = {
  name: 'models search',
  summary: 'Finds models to download, by name.',
  usage: `models search TEXT [--limit N] [--data-dir DIR] [--json]

Searches the GGUF models of Hugging Face, or of the server in HF_ENDPOINT. Shows one quantization per
repository; --json has all of them. Fit and tokens/s are estimates.`,
  run: (args) => withErrorText(() => search(args)),
};

async function search(args: readonly string[]): Promise<number> {
  const { dataDir, json, values, words } = ownerOptions(args, { limit: { type: 'string' } }, { min: 1, max: 16 });
  const limit = values.limit === undefined ? DEFAULT_RESULTS : Number(values.limit);
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_RESULTS)
    throw new UsageError(`--limit must be a whole number from 1 to ${MAX_RESULTS}.`);
  const machine: Machine = { ...(await readHostFacts()), ...modelMemorySettings(readConfig(configPath(dataDir))) };
  const modelRepository = modelRepositoryOf(process.env);
  const signal = abortOnInterrupt();
  const found = await searchRepositories(words.join(' '), limit, modelRepository, signal);
  const results = await Promise.all(found.map((repository) => resultOf(repository, modelRepository, machine, signal)));
  const usable = results.filter(({ variants }) => variants.length > 0);
  if (json) await print([JSON.stringify({ models: usable.map((result) => jsonOf(result, machine)) }, null, 2)]);
  else if (usable.length === 0) await print([`No downloadable model matches ${JSON.stringify(clean(words.join(' ')))}.`]);
  else {
    await print([
      modelRow('Model', 'size', 'tokens/s', 'vision', 'fits'),
      ...usable.map((result) => rowOf(result, machine)),
      '\n~ marks estimates. Download one: inference-provider models pull MODEL',
    ]);
  }
  return usable.length === 0 ? EXIT.needsOwner : EXIT.fine;
}

interface Result extends FoundRepository {
  /** One per quantization. Empty if the repository cannot be listed. */
  readonly variants: readonly Variant[];
}

async function resultOf(
  found: FoundRepository,
  modelRepository: ModelRepository,
  machine: Machine,
  signal: AbortSignal,
): Promise<Result & { readonly shown: Variant | null }> {
  const { repository } = found;
  try {
    const entries = await repositoryEntries({ kind: 'repository', repository, quantization: null }, modelRepository, signal);
    const variants = variantsOf(repository, entries);
    return { ...found, variants, shown: preferredVariant(fittingVariants(repository, variants, machine)) ?? variants[0] ?? null };
  } catch (error) {
    if (!(error instanceof DownloadError)) throw error;
    return { ...found, variants: [], shown: null };
  }
}

function rowOf({ repository, shown, isGated }: Awaited<ReturnType<typeof resultOf>>, machine: Machine): string {
  if (shown === null) return '';
  const { fits, tokensPerSecond } = expectedModel({ ...shown, name: repository }, machine);
  const isImage = knownModel(repository) !== null;
  const fit = isGated ? 'needs HF_TOKEN' : isImage ? 'image model' : fits ? '~yes' : 'no';
  const speed = isImage ? '-' : speedText(tokensPerSecond);
  return modelRow(clean(shown.source), byteSizeText(shown.bytes), speed, visionText(shown.projectorBytes > 0), fit);
}

function jsonOf({ repository, downloads, isGated, variants }: Result, machine: Machine) {
  return {
    repository,
    downloads,
    gated: isGated,
    variants: variants.map((variant) => {
      const { source, quantization, bytes, projectorBytes } = variant;
      const { fits, memoryBytes, tokensPerSecond } = expectedModel({ ...variant, name: repository }, machine);
      const isImage = knownModel(repository) !== null;
      return {
        source,
        quantization,
        bytes,
        vision: projectorBytes > 0,
        estimated_memory_bytes: isImage ? null : Math.round(memoryBytes),
        estimated_fit: isImage ? null : fits,
        estimated_tokens_per_second: isImage || tokensPerSecond === null ? null : Math.round(tokensPerSecond * 10) / 10,
      };
    }),
  };
}
