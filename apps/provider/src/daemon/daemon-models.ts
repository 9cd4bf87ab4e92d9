/** `DaemonModels`: the served models, their configured list, and the changes that the owner makes while the daemon runs. */
import { join } from 'node:path';
import type { Logger } from 'pino';
import type { Config } from '../config/config.js';
import type { DaemonStatus } from '../control/daemon-status.js';
import type { ModelsChange } from '../control/models-routes.js';
import { ControlRefusal } from '../control/route.js';
import type { Confinement } from '../host/hardening/confinement.js';
import type { ModelPool } from '../jobs/serving/model-pool.js';
import { FileHashes } from '../models/file-hash.js';
import { addOnPath } from '../models/store/add-on.js';
import { startupErrorText } from '../startup-error.js';
import { logModel, logRefusedModel } from './daemon-log.js';
import type { DaemonOptions } from './daemon-options.js';
import { type OpenedModels, openModels } from './open-models.js';

interface DaemonModelsOptions {
  readonly daemon: DaemonOptions;
  /** Memory of the machine in bytes; 0 if unknown. */
  readonly totalMemory: number;
  readonly confinement: Confinement;
  /** Called when the offers change. */
  readonly onChange: () => void;
}

export class DaemonModels {
  readonly served: ModelPool;
  readonly #options: DaemonOptions;
  readonly #log: Logger;
  readonly #opened: OpenedModels;

  /** Plans the memory and logs the models that are refused; loads nothing. Throws as {@link openModels}. */
  constructor({ daemon, totalMemory, confinement, onChange }: DaemonModelsOptions) {
    const { dataDir, log, models: choices, slots, context, reserve } = daemon;
    this.#options = daemon;
    this.#log = log;
    this.#opened = openModels({
      choices,
      slots,
      context,
      reserve,
      totalMemory,
      hashes: new FileHashes(join(dataDir, 'model-hashes.json')),
      addOnPath: addOnPath(dataDir),
      confinement,
      onEvent: (event) => logModel(log, event),
      onChange,
    });
    this.served = this.#opened.models;
    for (const refused of this.#opened.refused) logRefusedModel(log, refused);
  }

  get status(): Pick<DaemonStatus, 'engine' | 'models' | 'slots'> {
    const offers = this.served.offers();
    return {
      engine: offers.length > 0 ? 'ready' : 'down',
      models: offers.map(({ id, context_length }) => ({ id, context_length })),
      slots: this.served.slots,
    };
  }

  /** Applies the keep-alive time of each model and the memory reserved for the owner. */
  applyConfig(config: Config): void {
    const { models, reserve } = this.#options.servingOf(config);
    for (const refused of this.#opened.adjust(models, reserve)) logRefusedModel(this.#log, refused);
  }

  /** Serves the models that the owner now selects. Throws ControlRefusal and then changes nothing. */
  reload(config: Config): ModelsChange {
    const { modelsAreNamed, servingOf } = this.#options;
    if (modelsAreNamed) throw new ControlRefusal('models_named', 'the models are set on the command line');
    try {
      const refused = this.#opened.change(servingOf(config).models);
      for (const model of refused) logRefusedModel(this.#log, model);
      const models = [...this.served.ids()];
      this.#log.info({ event: 'models', models }, 'served models changed');
      return { models, refused: [...refused] };
    } catch (error) {
      throw new ControlRefusal('no_model', startupErrorText(error).replace(/\.$/, ''));
    }
  }
}
