/** `openModels` reads the headers of the models to serve, plans their memory and creates the pool that loads them. The caller closes the result. */
import { Engine, type EngineStatusEvent } from '../engine/engine.js';
import type { EngineSettings } from '../engine/messages.js';
import type { Confinement } from '../host/hardening/confinement.js';
import { ImageEngine, type ImageEngineStatusEvent } from '../imaging/image-engine.js';
import type { KeepAlive } from '../jobs/serving/keep-alive.js';
import { ModelPool } from '../jobs/serving/model-pool.js';
import type { ModelEvent, RunningEngine, ServedModel, Serving } from '../jobs/serving/served-model.js';
import { byteSizeText } from '../models/byte-size-text.js';
import { memoryCeiling, type PlannedModel, planModels } from '../models/capacity.js';
import type { FileHashes } from '../models/file-hash.js';
import { ModelFileError } from '../models/gguf-header.js';
import type { KvCacheType } from '../models/kv-cache-type.js';
import { type ModelFacts, readModelFacts } from '../models/model-facts.js';
import { isAddOnInstalled } from '../models/store/add-on.js';
import { StartupError } from '../startup-error.js';
import { type HashedModel, ModelHashes } from './model-hashes.js';

export interface ModelChoice {
  readonly path: string;
  /** For a vision model. */
  readonly projectorPath?: string;
  readonly keep: KeepAlive;
  /** Replaces the id derived from the file name. */
  readonly id?: string;
  /** Expected hash (`FileHashes.hashModel`). */
  readonly sha256?: string;
}

interface OpenModelsOptions {
  readonly choices: readonly ModelChoice[];
  /** As in `DaemonOptions`, like `context` and `reserve`. */
  readonly slots: number | null;
  readonly context: number | null;
  /** Default: `f16`. */
  readonly kvCacheType?: KvCacheType;
  readonly reserve: number | null;
  /** Memory of the machine in bytes; 0 if unknown. */
  readonly totalMemory: number;
  readonly hashes: FileHashes;
  /** Folder of the engine for quantized image models, if installed. */
  readonly addOnPath: string;
  readonly confinement: Confinement;
  readonly onEvent: (event: ModelEvent) => void;
  /** Called when the offers may have changed. */
  readonly onChange: () => void;
  /** Called when hashing the models in the background ended early. */
  readonly onHashFailure: (error: unknown) => void;
  /** See {@link ModelHashes}. */
  readonly onReplaced: (model: Pick<ModelFacts, 'id' | 'path'>) => void;
}

/** Chosen model that is not served, with a sentence for the owner. */
export interface RefusedModel {
  readonly path: string;
  readonly reason: string;
}

export interface OpenedModels {
  readonly models: ModelPool;
  readonly refused: readonly RefusedModel[];
  /** Applies changed keep-alive times and reserved memory. Returns the models that no longer fit. */
  readonly adjust: (choices: readonly ModelChoice[], reserve: number | null) => readonly RefusedModel[];
  /**
   * Replaces the list of models. Models with an unchanged plan stay loaded. Returns the models that are not served.
   *
   * @throws Changing nothing, the error of the first model, if no model can be served.
   */
  readonly change: (choices: readonly ModelChoice[]) => readonly RefusedModel[];
  /** Ends all engines, and cancels a delayed hashing. */
  readonly close: () => Promise<void>;
}

/** Crashes of an engine process within a time span, after which its model is disabled. */
const GIVE_UP_AFTER = { deaths: 3, withinMs: 10 * 60_000 };

/** Multiple of the estimated memory beyond which an image process is killed. */
const IMAGE_MEMORY_FACTOR = 2;

interface ReadableModel {
  readonly choice: ModelChoice;
  readonly facts: ModelFacts;
  readonly isAlwaysLoaded: boolean;
}

interface Plan {
  readonly planned: readonly PlannedModel<ReadableModel>[];
  readonly refused: readonly RefusedModel[];
  /** Bytes for all models together. */
  readonly ceiling: number;
}

/** Throws the error of the first model if none can be served. */
function plan(
  choices: readonly ModelChoice[],
  reserve: number | null,
  { slots, context, kvCacheType = 'f16', totalMemory }: OpenModelsOptions,
): Plan {
  const refused: RefusedModel[] = [];
  let firstError: Error | null = null;
  const refuse = (path: string, error: Error): void => {
    firstError ??= error;
    refused.push({ path, reason: error.message });
  };
  const readable: ReadableModel[] = [];
  for (const choice of choices) {
    try {
      const read = readModelFacts(choice.path, choice.projectorPath);
      const facts = choice.id === undefined ? read : { ...read, id: choice.id };
      const duplicate = readable.find((other) => other.facts.id === facts.id);
      if (duplicate !== undefined)
        throw new StartupError(`${duplicate.choice.path} and ${choice.path} both have the id ${facts.id}; serve only one`);
      readable.push({ choice, facts, isAlwaysLoaded: choice.keep.kind === 'always' });
    } catch (error) {
      if (!(error instanceof ModelFileError || error instanceof StartupError)) throw error;
      refuse(choice.path, error);
    }
  }
  const ceiling = memoryCeiling(totalMemory, reserve);
  const planned = planModels(readable, { ceiling, slots, context, kvCacheType }).filter(({ model, need, max }) => {
    if (need <= max) return true;
    refuse(model.choice.path, new StartupError(tooLarge(model.facts, need, max)));
    return false;
  });
  if (planned.length === 0) throw firstError ?? new StartupError('there is no model to serve');
  return { planned, refused, ceiling };
}

/** Loads no model yet, but begins to hash the files. Throws the error of the first model if no model can be served. */
export function openModels(options: OpenModelsOptions): OpenedModels {
  const { totalMemory } = options;
  let { reserve } = options;
  const { planned, refused, ceiling } = plan(options.choices, reserve, options);
  /** Choices of the planned models. */
  const choiceById = new Map<string, ModelChoice>();
  const { onChange, onHashFailure: onFailure, onReplaced } = options;
  const hashes = new ModelHashes({ hashes: options.hashes, onChange, onFailure, onReplaced });
  const setPlanned = (list: Plan['planned']): Serving[] => {
    choiceById.clear();
    for (const { model } of list) choiceById.set(model.facts.id, model.choice);
    return list.map(({ model: { facts, choice }, capacity, need }) => {
      const fileSha256 = () => hashes.hashOf(facts, models.model(facts.id)?.isInMemory === true);
      return { facts, capacity, need, keep: choice.keep, fileSha256 };
    });
  };
  const models = new ModelPool({
    models: setPlanned(planned),
    ceiling,
    start: (model, onEvent, signal) => {
      const beforeStart = (aborted: AbortSignal) => hashes.beforeStart(model.serving.facts, choiceById.get(model.id)?.sha256, aborted);
      return startEngine(model, options, { beforeStart, onEvent }, signal);
    },
    onEvent: options.onEvent,
    onChange,
  });
  hashes.setModels(hashedModels(planned));
  const unfitFor = (max: number, unfit: readonly ServedModel[]): readonly RefusedModel[] =>
    unfit.map(({ serving }) => ({ path: serving.facts.path, reason: tooLarge(serving.facts, serving.need, max) }));
  return {
    models,
    refused,
    adjust(choices, newReserve) {
      reserve = newReserve;
      const keepAlives = [...choiceById].flatMap(([id, current]) => {
        const choice = choices.find((other) => other.path === current.path && other.id === current.id);
        return choice === undefined ? [] : [[id, choice.keep] as const];
      });
      const max = memoryCeiling(totalMemory, reserve);
      return unfitFor(max, models.adjust(new Map(keepAlives), max));
    },
    change(choices) {
      const next = plan(choices, reserve, options);
      const unfit = models.replace(setPlanned(next.planned), next.ceiling);
      hashes.setModels(hashedModels(next.planned));
      return [...next.refused, ...unfitFor(next.ceiling, unfit)];
    },
    close() {
      hashes.close();
      return models.close();
    },
  };
}

function hashedModels(planned: Plan['planned']): readonly HashedModel[] {
  return planned.map(({ model: { facts, choice } }) => ({ id: facts.id, path: facts.path, files: facts.files, expected: choice.sha256 }));
}

interface EngineHooks {
  /** Called before every start of the engine's process. */
  readonly beforeStart: (signal: AbortSignal) => Promise<void>;
  readonly onEvent: (event: EngineStatusEvent | ImageEngineStatusEvent) => void;
}

function startEngine(
  { serving }: ServedModel,
  { addOnPath: addOn, confinement }: OpenModelsOptions,
  hooks: EngineHooks,
  signal: AbortSignal,
): Promise<RunningEngine> {
  const { facts, capacity, need } = serving;
  const gpu = process.platform === 'darwin' ? 'auto' : 'none';
  if (facts.image !== null) {
    const { engine } = facts.image;
    const memoryLimit = IMAGE_MEMORY_FACTOR * need;
    return ImageEngine.start(
      {
        settings: { engine, modelPath: facts.path, gpu, memoryLimit, addOnPath: isAddOnInstalled(addOn) ? addOn : null },
        giveUpAfter: GIVE_UP_AFTER,
        confinement,
        ...hooks,
      },
      signal,
    );
  }
  const { slots, contextSize, kvCacheType = 'f16' } = capacity;
  const files = { modelPath: facts.path, ...(facts.vision === null ? {} : { projectorPath: facts.vision.projectorPath }) };
  return Engine.start(
    {
      settings: { type: engineTypeOf(facts), ...files, slots, contextSize, kvCacheType, gpu },
      giveUpAfter: GIVE_UP_AFTER,
      confinement,
      ...hooks,
    },
    signal,
  );
}

function engineTypeOf({ embedding, vision }: ModelFacts): NonNullable<EngineSettings['type']> {
  if (embedding !== null) return 'embedding';
  return vision === null ? 'text' : 'vision';
}

function tooLarge(facts: ModelFacts, need: number, max: number): string {
  return `the model ${facts.id} needs ${byteSizeText(need)} of memory, and models may take ${byteSizeText(max)} here; choose a smaller one, or lower slots, context or reserve_gb in config.toml`;
}
