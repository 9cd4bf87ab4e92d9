/** `models list`: stored models, with fit and expected speed on this machine. */

import { parseArgs } from 'node:util';
import { configPath, dataDirOf } from '../../../config/data-dir.js';
import { type ModelMemorySettings, modelMemorySettings } from '../../../config/model-memory.js';
import { readConfig } from '../../../config/read-config.js';
import { type HostFacts, readHostFacts } from '../../../host/hardware/host-facts.js';
import { byteSizeText } from '../../../models/byte-size-text.js';
import { estimatedTokensPerSecond, memoryCeiling, planModels } from '../../../models/capacity.js';
import { sizeText } from '../../../models/image/image-facts.js';
import { kvCacheTypeOf } from '../../../models/kv-cache-type.js';
import { modelTypeOf, readModelFacts } from '../../../models/model-facts.js';
import type { ModelStore, StoredModel } from '../../../models/store/model-store.js';
import type { Command } from '../../command.js';
import { answeringDaemon } from '../../input/service-options.js';
import { COMMON_OPTIONS, openStore, readArguments, withErrorText } from '../../models-command.js';
import { clean, print } from '../../output/terminal.js';

const USAGE = 'models list [--data-dir DIR] [--json]';

export const modelsListCommand: Command = {
  name: 'models list',
  summary: 'Lists installed models, with memory need and expected speed.',
  usage: USAGE,
  run: (args) => withErrorText(() => run(args)),
};

async function run(args: readonly string[]): Promise<number> {
  const { values } = readArguments(USAGE, 0, () => parseArgs({ args: [...args], options: COMMON_OPTIONS, allowPositionals: true }));
  const { store } = openStore(values['data-dir']);
  const host = await readHostFacts();
  const memorySettings = modelMemorySettings(readConfig(configPath(dataDirOf(values))));
  const rows = store.entries().map((entry) => rowOf(entry, store, { ...host, ...memorySettings }));
  // A running provider may serve models outside the store: the demo model, or models of its command line.
  const daemon = await answeringDaemon(dataDirOf(values));
  const served = daemon === null ? null : daemon.models.map(({ id }) => id);
  if (values.json) await print([JSON.stringify({ models: rows, served }, null, 2)]);
  else await print(rows.length === 0 ? [emptyStoreText(served)] : rows.map(lineOf));
  return 0;
}

type Row = ReturnType<typeof rowOf>;

/** Also used by recommendations. A model that cannot be read has a `problem`. */
export function rowOf(
  entry: StoredModel,
  store: ModelStore,
  machine: Pick<HostFacts, 'memoryBytes' | 'bandwidthGbs'> & ModelMemorySettings,
) {
  const { id, bytes, sha256, source, use } = entry;
  const known = { id, bytes, sha256, source, use };
  try {
    const facts = readModelFacts(store.path(entry), store.projectorPath(entry));
    const { memoryBytes, bandwidthGbs, slots, context, kvCacheType, reserve } = machine;
    const ceiling = memoryCeiling(memoryBytes, reserve);
    const [plan] = planModels([{ facts, isAlwaysLoaded: true }], { ceiling, slots, context, kvCacheType });
    const type = modelTypeOf(facts);
    const speed = type === 'text' ? estimatedTokensPerSecond(facts, bandwidthGbs) : null;
    return {
      ...known,
      type,
      vision: facts.vision !== null,
      quantization: facts.quantization,
      context: plan?.capacity.contextSize ?? null,
      slots: plan?.capacity.slots ?? null,
      kv_cache_type: kvCacheTypeOf(facts, kvCacheType),
      sizes: plan?.capacity.sizes?.map(sizeText) ?? null,
      memory_bytes: plan === undefined ? null : Math.round(plan.need),
      fits: plan !== undefined && plan.need <= plan.max,
      estimated_tokens_per_second: speed === null ? null : Math.round(speed * 10) / 10,
      problem: null,
    };
  } catch (error) {
    const problem = error instanceof Error ? error.message : 'unreadable';
    return {
      ...known,
      type: null,
      vision: false,
      quantization: null,
      context: null,
      slots: null,
      kv_cache_type: null,
      sizes: null,
      memory_bytes: null,
      fits: false,
      estimated_tokens_per_second: null,
      problem,
    };
  }
}

function lineOf(row: Row): string {
  if (row.problem !== null) return `${row.id}  cannot be used: ${row.problem}`;
  const cache = row.kv_cache_type === 'q8_0' ? ' (KV cache q8_0)' : '';
  const serves = row.sizes === null ? `${row.slots} streams of ${row.context} tokens${cache}` : `images of ${row.sizes.join(', ')}`;
  const fits = row.fits ? `fits, ${serves}` : 'does NOT fit into the memory for models';
  const speed = row.estimated_tokens_per_second === null ? '' : `, about ${row.estimated_tokens_per_second} tokens/s (estimate)`;
  const use = row.use === null ? 'not served' : `served (${/^\d+$/.test(row.use) ? `${row.use} minutes idle` : row.use})`;
  const type = `${row.type}${row.vision ? ' and vision' : ''}`;
  return `${row.id}  ${type}, ${row.quantization}, ${byteSizeText(row.bytes)}, ${fits}${speed}; ${use}\n    weights sha256 ${row.sha256}`;
}

/** @param served Ids of the running provider's models; null if no provider runs. */
export function emptyStoreText(served: readonly string[] | null): string {
  const now =
    served === null || served.length === 0
      ? 'No models in the store. Until you add one, this machine serves the small model that ships with this program.'
      : `Served now: ${served.map(clean).join(', ')}. No models in the store.`;
  return `${now}\nFind a model that fits: inference-provider models recommend`;
}
