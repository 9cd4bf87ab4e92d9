/** `Daemon`: the provider's long-running process. Starts and stops its parts, and merges their status. */
import type { Enclave } from '@inference/enclave';
import type { MachineSettings } from '@inference/protocol';
import type { Config } from '../config/config.js';
import { configPath, dataDirOf } from '../config/data-dir.js';
import { storeSchedule } from '../config/edit-config.js';
import { LiveSettings, type SettingsState } from '../config/live-settings.js';
import { ControlServer } from '../control/control-server.js';
import type { AvailabilityStatus, DaemonStatus, EnclaveCheck } from '../control/daemon-status.js';
import type { LinkStatus } from '../control/link-status.js';
import { lockMachine } from '../control/machine-lock.js';
import type { ModelsChange } from '../control/models-routes.js';
import type { Pause } from '../host/availability/availability.js';
import { windowText } from '../host/availability/parse-schedule.js';
import { policyOf, type Window } from '../host/availability/policy.js';
import type { ModelEvent } from '../jobs/serving/served-model.js';
import type { TotalEarnings } from '../notifications/notification-policy.js';
import { type Notifier, openNotifier } from '../notifications/notifier.js';
import { installation } from '../update/installation.js';
import { CoordinatorConnection } from './coordinator-connection.js';
import { coordinatorUrl, fetchCoordinatorView } from './coordinator-view.js';
import { checkEnclave, helperCommand, startEnclave } from './daemon-enclave.js';
import { createDataDir, type DaemonEnvironment, prepareEnvironment } from './daemon-environment.js';
import { logAvailability, logRemoteCommand, logSettings } from './daemon-log.js';
import { DaemonModels } from './daemon-models.js';
import type { DaemonOptions } from './daemon-options.js';
import { HostAvailability } from './host-availability.js';
import { RemoteControl } from './remote-control.js';
import { daemonRoutes } from './routes.js';
import { SelfUpdate } from './self-update.js';
import { machineState, startingStatus } from './status.js';
import { Watchdog } from './watchdog/watchdog.js';

/** Created before the `Daemon`, because most of them start asynchronously. */
interface StartedParts {
  readonly environment: DaemonEnvironment;
  readonly availability: HostAvailability;
  readonly models: DaemonModels;
  readonly enclave: Enclave;
  /** Null on systems without notifications. */
  readonly notifier: Notifier | null;
}

export class Daemon {
  readonly #options: DaemonOptions;
  readonly #startedAt: number;
  readonly #control: ControlServer;
  readonly #unlockMachine: () => Promise<void>;
  readonly #parts: StartedParts;
  readonly #settings: LiveSettings;
  readonly #selfUpdate: SelfUpdate;
  readonly #remoteControl: RemoteControl;
  readonly #connection: CoordinatorConnection;
  readonly #watchdog: Watchdog;
  #isStopping = false;

  /**
   * Starts all parts: loads the always-loaded models, starts the enclave helper, and begins to connect to the coordinator.
   *
   * @throws Errors that `startupErrorText` converts for the owner.
   */
  static async start(options: DaemonOptions, signal: AbortSignal): Promise<Daemon> {
    createDataDir(options.dataDir);
    const startedAt = Date.now();
    let daemon: Daemon | null = null;
    // The control socket is also the lock of the data directory.
    const control = await ControlServer.open(
      options.dataDir,
      daemonRoutes(options, startedAt, () => daemon),
    );
    let unlockMachine = async (): Promise<void> => {};
    const notifier = openNotifier({
      dataDir: options.dataDir,
      isOn: () => (daemon === null ? options.config : daemon.#settings.config).notifications,
      // Null while the daemon starts. The notifier reads again later.
      earnings: async () => (daemon === null ? null : daemon.#totalEarnings()),
      log: options.log,
    });
    try {
      const command = helperCommand(options);
      // One daemon per user may use the real enclave, so all of them lock the same directory: the default one.
      if (!options.simulatedEnclave) unlockMachine = await lockMachine(dataDirOf({}, {}));
      const parts = await startParts(options, command, notifier, () => (daemon === null ? null : daemon.#connection), signal);
      try {
        daemon = new Daemon(options, startedAt, control, unlockMachine, parts);
      } catch (error) {
        await Promise.all([parts.availability.close(), parts.models.close(), parts.enclave.close()]);
        throw error;
      }
      return daemon;
    } catch (error) {
      notifier?.close();
      await unlockMachine();
      await control.close();
      throw error;
    }
  }

  private constructor(
    options: DaemonOptions,
    startedAt: number,
    control: ControlServer,
    unlockMachine: () => Promise<void>,
    parts: StartedParts,
  ) {
    this.#options = options;
    this.#startedAt = startedAt;
    this.#control = control;
    this.#unlockMachine = unlockMachine;
    this.#parts = parts;
    const { dataDir, config, log, onRestart, readConfig, service, socketUrl } = options;
    this.#settings = new LiveSettings({
      path: configPath(dataDir),
      initial: config,
      read: readConfig,
      apply: (changed) => this.#applyConfig(changed),
      onEvent: (event) => logSettings(log, event),
    });
    this.#selfUpdate = new SelfUpdate({
      installation: installation(),
      dataDir,
      coordinator: coordinatorUrl(socketUrl),
      service,
      automatic: () => this.#settings.config.update.automatic,
      isRegistered: () => this.#connection.isRegistered,
      onRestart,
      onOwnerNeeded: (version) => parts.notifier?.on({ type: 'update_ready', version }),
      log,
    });
    const { availability, enclave, environment, models, notifier } = parts;
    this.#remoteControl = new RemoteControl({
      isAllowed: () => this.#settings.config.remote_control,
      account: () => {
        const { state, account_name: name } = this.#connection.status.account;
        return state === 'linked' ? { name } : null;
      },
      pause: () => availability.pause,
      setPause: (pause) => availability.setPause(pause),
      setSchedule: (windows) => this.#setSchedule(windows),
      setModel: (id, isServed) => models.setServed(id, isServed, this.#settings.config),
      settings: () => this.#machineSettings(),
      clockSkewMs: () => this.#connection.status.clock_skew_ms ?? 0,
      onCommand: (event) => logRemoteCommand(log, event),
      now: Date.now,
    });
    this.#connection = new CoordinatorConnection({
      daemon: options,
      models: models.served,
      host: environment.host,
      enclave,
      availability,
      remoteControl: this.#remoteControl,
      machineSettings: () => this.#machineSettings(),
      notify: (event) => notifier?.on(event),
    });
    this.#watchdog = new Watchdog();
  }

  /** Accepts no more jobs, lets running jobs finish until the drain timeout or `force`, and ends every child process. */
  async stop(force?: AbortSignal): Promise<void> {
    this.#isStopping = true;
    const { availability, enclave, models, notifier } = this.#parts;
    notifier?.close();
    await availability.close();
    await this.#connection.close(force);
    this.#settings.close();
    await this.#selfUpdate.close();
    await Promise.all([models.close(), enclave.close(), this.#watchdog.close()]);
    await this.#unlockMachine();
    await this.#control.close();
  }

  get sessionToken(): string | null {
    return this.#connection.token;
  }

  /** Waits at most `VIEW_MS` for the coordinator's view of this provider. */
  async status(): Promise<DaemonStatus> {
    const { view, problem } = await fetchCoordinatorView(this.#options.socketUrl, this.#connection.token);
    const { availability, environment, models } = this.#parts;
    return {
      ...startingStatus(this.#options, this.#startedAt),
      state: this.#isStopping ? 'stopping' : 'running',
      ...this.#connection.status,
      ...models.status,
      availability: availability.status,
      host: machineState(availability.condition),
      settings: this.#settings.state,
      remote_control: this.#remoteControl.status,
      hardening: environment.hardening,
      coordinator_view: view,
      update: this.#selfUpdate.pending,
      coordinator_problem: problem,
    };
  }

  get availability(): AvailabilityStatus {
    return this.#parts.availability.status;
  }

  /** See {@link HostAvailability.setPause}. */
  setPause(pause: Pause | null): void {
    try {
      this.#parts.availability.setPause(pause);
    } finally {
      // A pause that cannot be stored applies until the daemon ends.
      this.#connection.announceSettings();
    }
  }

  checkEnclave(): Promise<EnclaveCheck> {
    return checkEnclave(this.#parts.enclave);
  }

  /** See {@link CoordinatorConnection.signInChanged}. */
  signInChanged(): Promise<LinkStatus> {
    return this.#connection.signInChanged();
  }

  /** Reads the settings file again. */
  reload(): SettingsState {
    const state = this.#settings.reload();
    // The stored models, which the console also shows, may have changed.
    this.#connection.announceSettings();
    return state;
  }

  /** See {@link DaemonModels.reload}. */
  reloadModels(): ModelsChange {
    const change = this.#parts.models.reload(this.#settings.config);
    this.#connection.announceSettings();
    return change;
  }

  /** For notifications. Null if not linked, or if the coordinator did not tell the account's earnings. */
  async #totalEarnings(): Promise<TotalEarnings | null> {
    const { state, account_name: account } = this.#connection.status.account;
    if (state !== 'linked') return null;
    const { view } = await fetchCoordinatorView(this.#options.socketUrl, this.#connection.token);
    return view?.earnings?.of === 'account' ? { account, microUsd: view.earnings.total_micro_usd } : null;
  }

  /** Throws ConfigError for an invalid settings file, or file system errors. */
  #setSchedule(windows: readonly Window[]): void {
    storeSchedule(configPath(this.#options.dataDir), windows);
    this.#settings.reload();
  }

  #machineSettings(): MachineSettings {
    const { availability, models } = this.#parts;
    const { pause, schedule } = availability;
    return {
      remote_control: this.#settings.config.remote_control,
      // Only a pause from the console has the member `console`.
      pause: pause === null ? null : { by: pause.console === undefined ? 'machine' : 'console', until: pause.until },
      schedule: { windows: schedule.windows.map(windowText).join(', '), time_zone: schedule.timeZone },
      ...models.stored,
    };
  }

  /** Settings that are missing here are read at each use, or need a restart. */
  #applyConfig(config: Config): void {
    const { log, fixedLogLevel } = this.#options;
    if (fixedLogLevel === null) log.level = config.log_level;
    void this.#parts.availability.applyConfig(config);
    this.#parts.models.applyConfig(config);
    this.#connection.announceSettings();
  }
}

/**
 * Starts the parts. If one fails, closes those that have started, except for the notifier.
 *
 * @param helper Command line of the enclave helper.
 * @param connection Returns null until the daemon is created.
 */
async function startParts(
  options: DaemonOptions,
  helper: readonly string[],
  notifier: Notifier | null,
  connection: () => CoordinatorConnection | null,
  signal: AbortSignal,
): Promise<StartedParts> {
  const { config, dataDir, log, simulatedHost } = options;
  const environment = await prepareEnvironment(options);
  let models: DaemonModels | null = null;
  const availability = await HostAvailability.open({
    dataDir,
    policy: policyOf(config),
    simulatedHost,
    onCondition: (condition) => {
      log.info({ event: 'machine', ...condition }, 'host condition changed');
      models?.served.setMemoryIsShort(condition.memoryPressure !== 'normal');
      connection()?.reportMachine();
    },
    onChange: (status) => {
      logAvailability(log, status);
      connection()?.announceAvailability(status);
    },
    onInhibitFailure: (reason) => log.warn({ event: 'sleep_not_prevented', reason }, 'system sleep cannot be prevented'),
    drain: async (force, cancel) => connection()?.drain(force, cancel),
    unload: async () => models?.served.suspend(),
    resume: () => models?.served.resume(),
  });
  if (!availability.isServing) logAvailability(log, availability.current);
  try {
    const { confinement, host } = environment;
    const onChange = (): void => connection()?.announceModels();
    const onEvent = (event: ModelEvent): void => {
      if (event.type === 'disabled') notifier?.on({ type: 'model_disabled', model: event.id });
    };
    models = new DaemonModels({ daemon: options, totalMemory: host.memoryBytes, confinement, onChange, onEvent });
    models.served.setMemoryIsShort(availability.condition.memoryPressure !== 'normal');
    if (!availability.isServing) await models.served.suspend();
    // The enclave helper starts while the models load.
    const [loaded, opened] = await Promise.allSettled([models.served.start(signal), startEnclave(helper, options)]);
    if (opened.status === 'rejected') throw loaded.status === 'rejected' ? loaded.reason : opened.reason;
    const enclave = opened.value;
    if (loaded.status === 'rejected') {
      await enclave.close().catch(() => {});
      throw loaded.reason;
    }
    return { environment, availability, models, enclave, notifier };
  } catch (error) {
    await Promise.all([availability.close(), models?.close()]);
    throw error;
  }
}
