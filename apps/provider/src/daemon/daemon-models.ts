/** `DaemonModels`: the served models of the daemon, and changes of the owner's selection at run time. */
import { join } from 'node:path';
import { MAX_SETTINGS_MODELS, type MachineSettings, type OwnerCommandRefusal } from '@inference/protocol';
import type { Logger } from 'pino';
import type { Config } from '../config/config.js';
import type { DaemonStatus } from '../control/daemon-status.js';
import type { ModelsChange } from '../control/models-routes.js';
import { ControlRefusal } from '../control/route.js';
import type { Confinement } from '../host/hardening/confinement.js';
import { keepAliveText } from '../jobs/serving/keep-alive.js';
import type { ModelPool } from '../jobs/serving/model-pool.js';
import type { ModelEvent } from '../jobs/serving/served-model.js';
import { FileHashes } from '../models/file-hash.js';
import { keepsF16, kvCacheTypeOf } from '../models/kv-cache-type.js';
import { addOnPath } from '../models/store/add-on.js';
import { ModelStore, ModelStoreError, type StoredModel } from '../models/store/model-store.js';
import { startupErrorText } from '../startup-error.js';
import { logKeptF16, logModel, logReplacedModel, logUnservableModel } from './daemon-log.js';
import type { DaemonOptions } from './daemon-options.js';
import { type OpenedModels, openModels } from './open-models.js';

interface DaemonModelsOptions {
  readonly daemon: DaemonOptions;
  /** Memory of the machine in bytes; 0 if unknown. */
  readonly totalMemory: number;
  readonly confinement: Confinement;
  /** Called after logging. */
  readonly onEvent: (event: ModelEvent) => void;
  /** Called when the offers change. */
  readonly onChange: () => void;
}

export class DaemonModels {
  readonly served: ModelPool;
  readonly #options: DaemonOptions;
  readonly #log: Logger;
  readonly #opened: OpenedModels;
  readonly #store: ModelStore;

  /** Loads nothing. Logs models that do not fit. Throws like {@link openModels}. */
  constructor({ daemon, totalMemory, confinement, onChange, onEvent }: DaemonModelsOptions) {
    const { dataDir, log, models: choices, slots, context, kvCacheType, reserve } = daemon;
    this.#options = daemon;
    this.#log = log;
    this.#store = new ModelStore(join(dataDir, 'models'));
    this.#opened = openModels({
      choices,
      slots,
      context,
      kvCacheType,
      reserve,
      totalMemory,
      hashes: new FileHashes(join(dataDir, 'model-hashes.json')),
      addOnPath: addOnPath(dataDir),
      confinement,
      onEvent: (event) => {
        logModel(log, event);
        onEvent(event);
      },
      onChange,
      onHashFailure: (error) => {
        const reason = error instanceof Error ? error.message : String(error);
        log.error({ event: 'model_hashes_failed', reason }, 'the hashing of the models ended early');
      },
      onReplaced: (model) => logReplacedModel(log, model),
    });
    this.served = this.#opened.models;
    for (const refused of this.#opened.refused) logUnservableModel(log, refused);
    this.#logKeptF16();
  }

  get status(): Pick<DaemonStatus, 'engine' | 'models' | 'slots'> {
    const offers = this.served.offers();
    return {
      engine: offers.length > 0 ? 'ready' : 'down',
      models: offers.map(({ id, context_length, vision }) => ({
        id,
        context_length,
        vision: vision !== undefined,
        ...this.#cacheType(id),
      })),
      slots: this.served.slots,
    };
  }

  async close(): Promise<void> {
    await this.#opened.close();
  }

  /** Models of the model store, for remote control. Empty if the store's list is damaged. */
  get stored(): Pick<MachineSettings, 'models' | 'models_fixed'> {
    const models = this.#entries().map(({ id, use, bytes }) => ({ id, served: use !== null, bytes }));
    return { models: models.slice(0, MAX_SETTINGS_MODELS), models_fixed: this.#options.modelsAreNamed };
  }

  /**
   * Selects or deselects a model of the store, like `models use`. Returns null if done, else the reason. Throws file system errors.
   *
   * The last selected model cannot be deselected. If the change cannot be applied, the earlier selection stays.
   */
  setServed(id: string, isServed: boolean, config: Config): OwnerCommandRefusal | null {
    if (this.#options.modelsAreNamed) return 'models_fixed';
    const entries = this.#entries();
    const entry = entries.find((candidate) => candidate.id === id);
    if (entry === undefined) return 'model_unknown';
    if ((entry.use !== null) === isServed) return null;
    if (!isServed && entries.every(({ id: other, use }) => other === id || use === null)) return 'last_model';
    this.#store.put({ ...entry, use: isServed ? keepAliveText({ kind: 'always' }) : null });
    try {
      const { refused } = this.reload(config);
      const path = this.#store.path(entry);
      if (!isServed || refused.every((model) => model.path !== path)) return null;
    } catch (error) {
      if (!(error instanceof ControlRefusal)) throw error;
    }
    this.#store.put(entry);
    this.#tryReload(config);
    return 'model_not_servable';
  }

  #cacheType(id: string): Pick<DaemonStatus['models'][number], 'kv_cache_type'> {
    const serving = this.served.model(id)?.serving;
    const type = serving === undefined ? null : kvCacheTypeOf(serving.facts, this.#options.kvCacheType);
    return type === null ? {} : { kv_cache_type: type };
  }

  #logKeptF16(): void {
    for (const { serving } of this.served.all()) {
      if (keepsF16(serving.facts, this.#options.kvCacheType)) logKeptF16(this.#log, serving.facts.id);
    }
  }

  #entries(): readonly StoredModel[] {
    try {
      return this.#store.entries();
    } catch (error) {
      if (error instanceof ModelStoreError) return [];
      throw error;
    }
  }

  /** If the reload fails, the served models stay. */
  #tryReload(config: Config): void {
    try {
      this.reload(config);
    } catch (error) {
      if (!(error instanceof ControlRefusal)) throw error;
    }
  }

  /** Applies keep-alive times and the memory reserved for the owner. */
  applyConfig(config: Config): void {
    const { models, reserve } = this.#options.modelSettingsOf(config);
    for (const refused of this.#opened.adjust(models, reserve)) logUnservableModel(this.#log, refused);
  }

  /**
   * Serves the models that the owner has selected now.
   *
   * @throws {ControlRefusal} Without a change: none can be served, or the command line names the models.
   */
  reload(config: Config): ModelsChange {
    const { modelsAreNamed, modelSettingsOf } = this.#options;
    if (modelsAreNamed) throw new ControlRefusal('models_named', 'the models are set on the command line');
    try {
      const refused = this.#opened.change(modelSettingsOf(config).models);
      for (const model of refused) logUnservableModel(this.#log, model);
      this.#logKeptF16();
      const models = [...this.served.ids()];
      this.#log.info({ event: 'models', models }, 'served models changed');
      return { models, refused: [...refused] };
    } catch (error) {
      throw new ControlRefusal('no_model', startupErrorText(error).replace(/\.$/, ''));
    }
  }
}
