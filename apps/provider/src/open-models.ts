/**
 * From the owner's list of model files to models that are served: reads what they are, plans the memory they share, and says
 * which of them cannot be served here and why. Called once by the daemon, which closes what it gets.
 */
import { Engine, type EngineEvent } from './engine/engine.js';
import type { Confinement } from './hardening/confinement.js';
import { ImageEngine, type ImageEngineEvent } from './imaging/image-engine.js';
import { memoryCeiling, planModels } from './models/capacity.js';
import type { FileHashes } from './models/file-hash.js';
import { ModelFileError } from './models/gguf-header.js';
import { isAddOnInstalled } from './models/library/add-on.js';
import { type ModelFacts, readModelFacts } from './models/model-facts.js';
import type { Keep } from './serving/keep.js';
import type { ModelEvent, RunningEngine, ServedModel } from './serving/served-model.js';
import { ServedModels } from './serving/served-models.js';
import { StartError } from './start-error.js';

/** A model that the owner wants to serve. */
export interface ModelChoice {
  readonly path: string;
  readonly keep: Keep;
  /** In place of the id that its name gives. */
  readonly id?: string;
  /** What the model's hash must be (FileHashes.ofModel). */
  readonly sha256?: string;
}

export interface OpenModelsOptions {
  readonly choices: readonly ModelChoice[];
  readonly slots: number | null;
  readonly context: number | null;
  /** Bytes that the owner wants left for other things; null: two fifths of the memory. */
  readonly reserve: number | null;
  /** Bytes; 0 when not known. */
  readonly totalMemory: number;
  readonly hashes: FileHashes;
  /** Where the engine for quantised image models is, if it is installed. */
  readonly addOnPath: string;
  /** What keeps the network from the processes that hold a model. */
  readonly confinement: Confinement;
  readonly onEvent: (event: ModelEvent) => void;
  readonly onChange: () => void;
}

/** A model of the list that is not served, and why; one sentence for the owner. */
export interface RefusedModel {
  readonly path: string;
  readonly reason: string;
}

export interface OpenedModels {
  readonly models: ServedModels;
  readonly refused: readonly RefusedModel[];
  /** The owner wants something else of the models that are served: how long they stay, and the bytes that are left to other things. */
  readonly adjust: (choices: readonly ModelChoice[], reserve: number | null) => readonly RefusedModel[];
}

/** An engine that dies so often within so long a time takes its model out. */
const GIVE_UP_AFTER = { deaths: 3, withinMs: 10 * 60_000 };

/** An image process that takes this many times what was planned for it is ended: the plan is an estimate, the ceiling is the owner's. */
const MEMORY_SLACK = 2;

interface Readable {
  readonly choice: ModelChoice;
  readonly facts: ModelFacts;
  readonly always: boolean;
}

/** Throws the error of the first model when none is left. Nothing is loaded yet. */
export function openModels(options: OpenModelsOptions): OpenedModels {
  const { choices, slots, context, reserve, totalMemory, hashes } = options;
  const refused: RefusedModel[] = [];
  let first: Error | null = null;
  const refuse = (path: string, error: Error): void => {
    first ??= error;
    refused.push({ path, reason: error.message });
  };
  const readable: Readable[] = [];
  for (const choice of choices) {
    try {
      const read = readModelFacts(choice.path);
      const facts = choice.id === undefined ? read : { ...read, id: choice.id };
      const twin = readable.find((other) => other.facts.id === facts.id);
      if (twin !== undefined) throw new StartError(`${twin.choice.path} and ${choice.path} are both called ${facts.id}; serve one of them`);
      readable.push({ choice, facts, always: choice.keep.kind === 'always' });
    } catch (error) {
      if (!(error instanceof ModelFileError || error instanceof StartError)) throw error;
      refuse(choice.path, error);
    }
  }
  const ceiling = memoryCeiling(totalMemory, reserve);
  const planned = planModels(readable, { ceiling, slots, context }).filter(({ wanted, need, most }) => {
    if (need <= most) return true;
    refuse(wanted.choice.path, new StartError(tooLarge(wanted.facts, need, most)));
    return false;
  });
  if (planned.length === 0) throw first ?? new StartError('there is no model to serve');
  const files = new Map(planned.map(({ wanted }) => [wanted.facts.id, wanted.choice]));
  const known = new Map<string, string>();
  const models = new ServedModels({
    models: planned.map(({ wanted, capacity, need }) => ({
      facts: wanted.facts,
      capacity,
      need,
      keep: wanted.choice.keep,
      fileSha256: () => known.get(wanted.facts.id) ?? null,
    })),
    ceiling,
    start: async (model, onEvent, signal) => {
      const sha256 = files.get(model.id)?.sha256;
      if (sha256 !== undefined) {
        if ((await hashes.ofModel(model.serving.facts.files, signal)) !== sha256) {
          throw new ModelFileError(`the file ${model.serving.facts.path} has changed since it was downloaded; pull it again`);
        }
        known.set(model.id, sha256);
      }
      return await startEngine(model, options, onEvent, signal);
    },
    onEvent: options.onEvent,
    onChange: options.onChange,
  });
  void hashAll(models, known, options).catch(() => {
    // A file that cannot be read now fails when it is loaded, which its owner hears of.
  });
  const adjust = (wanted: readonly ModelChoice[], left: number | null): readonly RefusedModel[] => {
    const now = memoryCeiling(totalMemory, left);
    const keeps = [...files].flatMap(([id, { path }]) => {
      const choice = wanted.find((other) => other.path === path);
      return choice === undefined ? [] : [[id, choice.keep] as const];
    });
    const unfit = models.adjust(new Map(keeps), now);
    return unfit.map(({ serving }) => ({ path: serving.facts.path, reason: tooLarge(serving.facts, serving.need, now) }));
  };
  return { models, refused, adjust };
}

function startEngine(
  { serving }: ServedModel,
  { addOnPath: addOn, confinement }: OpenModelsOptions,
  onEvent: (event: EngineEvent | ImageEngineEvent) => void,
  signal: AbortSignal,
): Promise<RunningEngine> {
  const { facts, capacity, need } = serving;
  const gpu = process.platform === 'darwin' ? 'auto' : 'none';
  if (facts.image !== null) {
    const { engine } = facts.image;
    const memoryLimit = MEMORY_SLACK * need;
    return ImageEngine.start(
      {
        settings: { engine, modelPath: facts.path, gpu, memoryLimit, addOnPath: isAddOnInstalled(addOn) ? addOn : null },
        giveUpAfter: GIVE_UP_AFTER,
        confinement,
        onEvent,
      },
      signal,
    );
  }
  const { slots, contextSize } = capacity;
  return Engine.start(
    {
      settings: { type: facts.embedding === null ? 'text' : 'embedding', modelPath: facts.path, slots, contextSize, gpu },
      giveUpAfter: GIVE_UP_AFTER,
      confinement,
      onEvent,
    },
    signal,
  );
}

/** One after the other, beside everything else: the coordinator is told a hash when it is known. */
async function hashAll(models: ServedModels, known: Map<string, string>, { hashes, onChange }: OpenModelsOptions): Promise<void> {
  for (const { id, serving } of models.all()) {
    if (known.has(id)) continue;
    known.set(id, await hashes.ofModel(serving.facts.files));
    onChange();
  }
}

function tooLarge(facts: ModelFacts, need: number, most: number): string {
  return `the model ${facts.id} needs ${gigabytes(need)} of memory, and models may take ${gigabytes(most)} here; choose a smaller one, or lower slots, context or reserve_gb in config.toml`;
}

function gigabytes(bytes: number): string {
  return `${(Math.max(0, bytes) / 1e9).toFixed(1)} GB`;
}
