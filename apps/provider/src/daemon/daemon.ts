/**
 * The provider's daemon: the only place that wires model, engine, enclave and coordinator together. Whatever starts here
 * is ended here, and what went wrong on the way is told once.
 */
import { join } from 'node:path';
import { type Enclave, openEnclave } from '@inference/enclave';
import type { Config } from '../config/config.js';
import { configPath, dataDirOf } from '../config/data-dir.js';
import { LiveSettings, type SettingsState } from '../config/live-settings.js';
import { availabilityRoutes } from '../control/availability-routes.js';
import { ControlServer } from '../control/control-server.js';
import type { AvailabilityStatus, DaemonStatus, EnclaveCheck } from '../control/daemon-status.js';
import { linkRoutes } from '../control/link-routes.js';
import type { LinkStatus } from '../control/link-status.js';
import { takeMachine } from '../control/machine-lock.js';
import { type ModelsChange, modelsRoutes } from '../control/models-routes.js';
import { ControlRefusal } from '../control/route.js';
import { controlRoutes } from '../control/routes.js';
import { systemProblem } from '../files/system-error.js';
import { policyOf } from '../host/availability/policy.js';
import { forbidCoreDumps } from '../host/hardening/core-dumps.js';
import { mendModes } from '../host/hardening/secret-modes.js';
import { type HostFacts, readHostFacts } from '../host/hardware/host-facts.js';
import { FileHashes } from '../models/file-hash.js';
import { addOnPath } from '../models/library/add-on.js';
import type { ServedModels } from '../serving/served-models.js';
import { startSentence } from '../startup-error.js';
import { installation } from '../update/installation.js';
import { agentVersion } from '../version.js';
import { availabilityStatus } from './availability-report.js';
import { CoordinatorConnection } from './coordinator-connection.js';
import { coordinatorUrl, fetchCoordinatorView } from './coordinator-view.js';
import { confinementOf, helperCommand, hostOf, makeDataDir } from './daemon-environment.js';
import { logAvailability, logEnclave, logModel, logRefusedModel, logSettings } from './daemon-log.js';
import type { DaemonOptions } from './daemon-options.js';
import { OpenAttendance } from './host-availability.js';
import { type OpenedModels, openModels } from './open-models.js';
import { SelfUpdate } from './self-update.js';
import { machineState, startingStatus } from './status.js';
import { Watchdog } from './watchdog/watchdog.js';

const STARTING = 'the provider is still starting; try again in a moment';
/** How long the enclave may take to show that it works, in milliseconds. */
const ENCLAVE_CHECK_MS = 3_000;

export class Daemon {
  #stopping = false;
  #giveBack = async (): Promise<void> => {};
  private readonly connection: CoordinatorConnection;
  #automaticUpdates: boolean;
  readonly #watchdog = new Watchdog();
  readonly #settings: LiveSettings;
  readonly #selfUpdate: SelfUpdate;

  private constructor(
    private readonly options: DaemonOptions,
    private readonly control: ControlServer,
    private readonly startedAt: number,
    private readonly models: ServedModels,
    host: HostFacts,
    private readonly enclave: Enclave,
    private readonly attendance: OpenAttendance,
    private readonly opened: OpenedModels,
    private readonly hardening: DaemonStatus['hardening'],
  ) {
    const { log } = options;
    this.#automaticUpdates = options.config.update.automatic;
    this.#settings = new LiveSettings({
      path: configPath(options.dataDir),
      now: options.config,
      read: options.readConfig,
      apply: (config) => this.#apply(config),
      onEvent: (event) => logSettings(log, event),
    });
    this.#selfUpdate = new SelfUpdate({
      found: installation(),
      dataDir: options.dataDir,
      coordinator: coordinatorUrl(options.socketUrl),
      service: options.service,
      automatic: () => this.#automaticUpdates,
      isRegistered: () => this.connection.registered,
      onRestart: options.onRestart,
      log,
    });
    this.connection = new CoordinatorConnection({ daemon: options, models, host, enclave, attendance });
  }

  /**
   * Takes the data directory, loads what always stays loaded, opens the enclave and connects. Throws errors that `startSentence`
   * words for the owner.
   */
  static async start(options: DaemonOptions, signal: AbortSignal): Promise<Daemon> {
    makeDataDir(options.dataDir);
    const startedAt = Date.now();
    let daemon: Daemon | null = null;
    const control = await ControlServer.open(options.dataDir, [
      ...controlRoutes({
        status: async () => (daemon === null ? startingStatus(options, startedAt) : daemon.status()),
        enclave: async () => daemon?.checkEnclave() ?? { usable: false, kind: null, problem: 'the provider is still starting' },
        reload: async () => (daemon === null ? startingStatus(options, startedAt).settings : daemon.reload()),
        stop: async () => options.onStop(),
      }),
      ...modelsRoutes(() => {
        if (daemon === null) throw new ControlRefusal('starting', STARTING);
        return daemon.reloadModels();
      }),
      ...availabilityRoutes({
        availability: () => daemon?.availability ?? null,
        setPause: (pause) => {
          if (daemon === null) throw new ControlRefusal('starting', STARTING);
          try {
            daemon.attendance.setPause(pause);
          } catch (error) {
            throw new ControlRefusal('not_kept', `it is so from now on, and a restart will forget it: ${systemProblem(error) ?? error}`);
          }
        },
      }),
      ...linkRoutes({ signInChanged: async () => (await daemon?.signInChanged()) ?? startingStatus(options, startedAt).account }),
    ]);
    let giveBack = async (): Promise<void> => {};
    try {
      const command = helperCommand(options);
      if (!options.simulatedEnclave) giveBack = await takeMachine(dataDirOf({}, {}));
      daemon = await Daemon.#start(options, command, control, startedAt, signal);
      daemon.#giveBack = giveBack;
      return daemon;
    } catch (error) {
      await giveBack();
      await control.close();
      throw error;
    }
  }

  static async #start(
    options: DaemonOptions,
    command: readonly string[],
    control: ControlServer,
    startedAt: number,
    signal: AbortSignal,
  ): Promise<Daemon> {
    const { log } = options;
    for (const path of mendModes(options.dataDir)) log.warn({ event: 'mode_mended', path }, 'other users could read this; now they cannot');
    const [host, coreDumps, confinement] = await Promise.all([
      readHostFacts(hostOf(options)),
      forbidCoreDumps(),
      confinementOf(options.config),
    ]);
    const hardening = { core_dumps: coreDumps, engine_network: confinement.kind, engine_network_problem: confinement.why };
    let daemon: Daemon | null = null;
    let served: ServedModels | null = null;
    const attendance = await OpenAttendance.open({
      dataDir: options.dataDir,
      policy: policyOf(options.config),
      simulatedHost: options.simulatedHost,
      onCondition: (condition) => {
        log.info({ event: 'machine', ...condition }, "the machine's condition has changed");
        served?.setMemoryIsShort(condition.memoryPressure !== 'normal');
        daemon?.connection.reportMachine();
      },
      onChange: (status) => {
        logAvailability(log, status);
        daemon?.connection.announceAvailability(status);
      },
      onAwakeProblem: (reason) => log.warn({ event: 'sleep_not_prevented', reason }, 'the system cannot be kept from going to sleep'),
      leave: async (hurry, stay) => daemon?.connection.stepAside(hurry, stay),
      rest: async () => served?.rest(),
      resume: () => served?.resume(),
    });
    if (attendance.status.state !== 'serving') logAvailability(log, attendance.status);
    try {
      const { slots, context, reserve } = options;
      const opened = openModels({
        choices: options.models,
        slots,
        context,
        reserve,
        totalMemory: host.memoryBytes,
        hashes: new FileHashes(join(options.dataDir, 'model-hashes.json')),
        addOnPath: addOnPath(options.dataDir),
        confinement,
        onEvent: (event) => logModel(log, event),
        onChange: () => daemon?.connection.announceModels(),
      });
      const { models } = opened;
      for (const one of opened.refused) logRefusedModel(log, one);
      served = models;
      models.setMemoryIsShort(attendance.condition.memoryPressure !== 'normal');
      if (attendance.status.state !== 'serving') await models.rest();
      await models.start(signal);
      const enclave = await openEnclave({ command, onEvent: (event) => logEnclave(log, event) });
      daemon = new Daemon(options, control, startedAt, models, host, enclave, attendance, opened, hardening);
      return daemon;
    } catch (error) {
      await Promise.all([attendance.close(), served?.close()]);
      throw error;
    }
  }

  /** Takes no more jobs, lets running ones finish for a while or until `hurry`, and ends every child process. */
  async stop(hurry?: AbortSignal): Promise<void> {
    this.#stopping = true;
    await this.attendance.close();
    await this.connection.close(hurry);
    this.#settings.close();
    await this.#selfUpdate.close();
    await Promise.all([this.models.close(), this.enclave.close(), this.#watchdog.close()]);
    await this.#giveBack();
    await this.control.close();
  }

  /** What the owner's commands are told. Asks the coordinator, too, and waits for it a few seconds at most. */
  async status(): Promise<DaemonStatus> {
    const { view, problem } = await fetchCoordinatorView(this.options.socketUrl, this.connection.token);
    const offers = this.models.offers();
    return {
      ...startingStatus(this.options, this.startedAt),
      state: this.#stopping ? 'stopping' : 'running',
      ...this.connection.status,
      engine: offers.length > 0 ? 'ready' : 'down',
      models: offers.map(({ id, context_length }) => ({ id, context_length })),
      slots: this.models.slots,
      availability: this.availability,
      host: machineState(this.attendance.condition),
      settings: this.#settings.state,
      hardening: this.hardening,
      coordinator_view: view,
      coordinator_problem: problem,
    };
  }

  /** The owner has signed in or out. */
  signInChanged(): Promise<LinkStatus> {
    return this.connection.signInChanged();
  }

  /** Reads the file of settings again, and takes over what can be changed while this runs. */
  reload(): SettingsState {
    return this.#settings.reload();
  }

  /** Serves what the library says now. Throws ControlRefusal, and then everything stays as it was. */
  reloadModels(): ModelsChange {
    const { log, modelsAreNamed, servingOf } = this.options;
    if (modelsAreNamed) throw new ControlRefusal('models_named', 'its models were named on its command line');
    try {
      const refused = this.opened.change(servingOf(this.#settings.config).models);
      for (const one of refused) logRefusedModel(log, one);
      const models = [...this.models.ids()];
      log.info({ event: 'models', models }, 'the models that are served have changed');
      return { models, refused: [...refused] };
    } catch (error) {
      throw new ControlRefusal('no_model', startSentence(error).replace(/\.$/, ''));
    }
  }

  /** Each part that can change while it runs has its line here; `config/live-settings.ts` names what they read. */
  #apply(config: Config): void {
    const { log, fixedLogLevel } = this.options;
    if (fixedLogLevel === null) log.level = config.log_level;
    void this.attendance.setPolicy(policyOf(config));
    this.#automaticUpdates = config.update.automatic;
    const { models, reserve } = this.options.servingOf(config);
    for (const refused of this.opened.adjust(models, reserve)) logRefusedModel(log, refused);
  }

  /** Has the enclave sign a statement, which the next attestation would do just so. */
  async checkEnclave(): Promise<EnclaveCheck> {
    const { kind } = this.enclave;
    try {
      await this.enclave.attest({ version: agentVersion() }, AbortSignal.timeout(ENCLAVE_CHECK_MS));
      return { usable: true, kind, problem: null };
    } catch (error) {
      return { usable: false, kind, problem: error instanceof Error ? error.message : 'unknown' };
    }
  }

  /** Whether it serves, and why not. */
  get availability(): AvailabilityStatus {
    return availabilityStatus(this.attendance);
  }
}
