/**
 * The provider's daemon: the only place that wires model, engine, enclave and coordinator together. Whatever starts here
 * is ended here, and what went wrong on the way is told once.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { type Enclave, nativeHelperCommand, openEnclave, simulatedHelperCommand } from '@inference/enclave';
import { cleanLabel, type Hardware, type TrustMessage } from '@inference/protocol';
import { providerIdOf } from '@inference/protocol/crypto';
import type { Logger } from 'pino';
import type { Config } from './config/config.js';
import { configPath, dataDirOf } from './config/data-dir.js';
import { ConnectionLog } from './control/connection-log.js';
import { ControlServer } from './control/control-server.js';
import { coordinatorUrl, fetchCoordinatorView } from './control/coordinator-view.js';
import type { DaemonStatus, EnclaveCheck } from './control/daemon-status.js';
import { takeMachine } from './control/machine-lock.js';
import { controlRoutes } from './control/routes.js';
import { type Confinement, findConfinement } from './hardening/confinement.js';
import { forbidCoreDumps } from './hardening/core-dumps.js';
import { mendModes } from './hardening/secret-modes.js';
import { type HostFacts, readHostFacts } from './host/host-facts.js';
import { ConditionWatch, LOOK_EVERY_MS } from './host/watch-condition.js';
import { logEnclave, logEnrolment, logJob, logModel, logRefusedModels, logSession, logSettings, logTrust } from './log-daemon.js';
import { FileHashes } from './models/file-hash.js';
import { addOnPath } from './models/library/add-on.js';
import { type ModelChoice, openModels } from './open-models.js';
import { SelfUpdate } from './self-update.js';
import type { ServedModels } from './serving/served-models.js';
import { Enrolment, simulatedInstaller } from './session/enrolment.js';
import type { Session } from './session/session.js';
import { stayConnected } from './session/stay-connected.js';
import { Wakes } from './session/wakes.js';
import { LiveSettings, type SettingsState } from './settings/live-settings.js';
import { StartError } from './start-error.js';
import { machineState, outcomeOf, startingStatus } from './status-parts.js';
import { installation } from './update/installation.js';
import { agentVersion } from './version.js';
import { Watchdog } from './watchdog/watchdog.js';
import { Jobs } from './work/jobs.js';
import { leaseModel } from './work/model-lease.js';

export interface DaemonOptions {
  /** WebSocket address of the coordinator's provider socket. */
  readonly socketUrl: string;
  readonly dataDir: string;
  /** At least one. */
  readonly models: readonly ModelChoice[];
  readonly simulatedEnclave: boolean;
  /** Asks for the device-management enrolment of this Mac. */
  readonly enrol: boolean;
  /** Simulated management server on whose Mac profiles are installed; null: the owner installs them. */
  readonly simulatedManagement: string | null;
  readonly slots: number | null;
  readonly context: number | null;
  /** Folder with the /sys and /proc of a simulated machine; null: this machine's own. */
  readonly simulatedHost: string | null;
  /** Time that running jobs get when the daemon stops, in milliseconds. */
  readonly drainMs: number;
  /** Bytes of memory that models leave to the owner; null: two fifths. */
  readonly reserve: number | null;
  /** The file of settings as it was read at the start. */
  readonly config: Config;
  /** Reads it again. Throws an Error whose message is for the owner. */
  readonly readConfig: () => Config;
  /** Set: its words stand in the environment, and go before the file. */
  readonly fixedLogLevel: string | null;
  /** Ends the daemon as a signal does. */
  readonly onStop: () => void;
  /** Ends it, too, and has whoever keeps it start it again. */
  readonly onRestart: () => void;
  /** A service manager keeps it. */
  readonly service: boolean;
  readonly log: Logger;
}

/** How often a simulated machine is looked at, in milliseconds. */
const LOOK_AT_SIMULATION_MS = 100;
/** How long the enclave may take to show that it works, in milliseconds. */
const ENCLAVE_CHECK_MS = 3_000;

export class Daemon {
  readonly #leave = new AbortController();
  #jobs: Jobs | null = null;
  #session: Session | null = null;
  #trust: TrustMessage | null = null;
  #connected: Promise<void> = Promise.resolve();
  #stopping = false;
  #giveBack = async (): Promise<void> => {};
  readonly #connection = new ConnectionLog();
  readonly #condition: ConditionWatch;
  readonly #wakes = new Wakes();
  #automaticUpdates: boolean;
  readonly #watchdog = new Watchdog();
  readonly #settings: LiveSettings;
  readonly #selfUpdate: SelfUpdate;

  private constructor(
    private readonly options: DaemonOptions,
    private readonly control: ControlServer,
    private readonly startedAt: number,
    private readonly models: ServedModels,
    private readonly host: HostFacts,
    private readonly enclave: Enclave,
    private readonly hardening: DaemonStatus['hardening'],
  ) {
    const { simulatedHost, log } = options;
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
      isRegistered: () => this.#session?.registered === true,
      onRestart: options.onRestart,
      log,
    });
    this.#wakes.on(({ jumpMs }) => log.info({ event: 'woke', jump_ms: jumpMs }, 'this machine has slept, or its clock was set'));
    this.#condition = new ConditionWatch(
      { platform: simulatedHost === null ? process.platform : 'linux', root: simulatedHost ?? '/' },
      simulatedHost === null ? LOOK_EVERY_MS : LOOK_AT_SIMULATION_MS,
      (condition) => {
        options.log.info({ event: 'machine', ...condition }, "the machine's condition has changed");
        models.setMemoryIsShort(condition.memoryPressure !== 'normal');
        if (this.#session?.registered === true) this.#jobs?.reportMachine();
      },
    );
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
    const [host, coreDumps, confinement] = await Promise.all([readHostFacts(), forbidCoreDumps(), confinementOf(options.config)]);
    const hardening = { core_dumps: coreDumps, engine_network: confinement.kind, engine_network_problem: confinement.why };
    let daemon: Daemon | null = null;
    const { slots, context, reserve } = options;
    const { models, refused } = openModels({
      choices: options.models,
      slots,
      context,
      reserve,
      totalMemory: host.memoryBytes,
      hashes: new FileHashes(join(options.dataDir, 'model-hashes.json')),
      addOnPath: addOnPath(options.dataDir),
      confinement,
      onEvent: (event) => logModel(log, event),
      onChange: () => daemon?.announceModels(),
    });
    for (const { path, reason } of refused) log.error({ event: 'model_refused', path, reason }, `a model is not served: ${reason}`);
    let enclave: Enclave;
    try {
      await models.start(signal);
      enclave = await openEnclave({ command, onEvent: (event) => logEnclave(log, event) });
    } catch (error) {
      await models.close();
      throw error;
    }
    daemon = new Daemon(options, control, startedAt, models, host, enclave, hardening);
    daemon.#connect();
    return daemon;
  }

  /** Takes no more jobs, lets running ones finish for a while or until `hurry`, and ends every child process. */
  async stop(hurry?: AbortSignal): Promise<void> {
    this.#stopping = true;
    if (this.#session?.registered === true) await this.#jobs?.drain(this.options.drainMs, hurry);
    this.#leave.abort();
    this.#settings.close();
    await this.#selfUpdate.close();
    this.#wakes.close();
    await this.#connected;
    await Promise.all([this.models.close(), this.enclave.close(), this.#condition.close(), this.#watchdog.close()]);
    await this.#giveBack();
    await this.control.close();
  }

  /** What the owner's commands are told. Asks the coordinator, too, and waits for it a few seconds at most. */
  async status(): Promise<DaemonStatus> {
    const { view, problem } = await fetchCoordinatorView(this.options.socketUrl, this.#connection.token);
    const offers = this.models.offers();
    return {
      ...startingStatus(this.options, this.startedAt),
      state: this.#stopping ? 'stopping' : 'running',
      provider_id: providerIdOf(this.enclave.publicKey),
      connection: this.#connection.connection,
      clock_skew_ms: this.#connection.clockSkewMs,
      trust: this.trust,
      engine: offers.length > 0 ? 'ready' : 'down',
      models: offers.map(({ id, context_length }) => ({ id, context_length })),
      slots: this.models.slots,
      running_jobs: this.#jobs?.active ?? 0,
      jobs: this.#connection.jobs,
      host: machineState(this.#condition.condition),
      settings: this.#settings.state,
      hardening: this.hardening,
      coordinator_view: view,
      coordinator_problem: problem,
    };
  }

  /** Reads the file of settings again, and takes over what can be changed while this runs. */
  reload(): SettingsState {
    return this.#settings.reload();
  }

  /** Each part that can change while it runs has its line here; `settings/live-settings.ts` names what they read. */
  #apply(config: Config): void {
    const { log, fixedLogLevel } = this.options;
    if (fixedLogLevel === null) log.level = config.log_level;
    this.#automaticUpdates = config.update.automatic;
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

  /** What the coordinator said last of this provider's standing; null while it is not registered. */
  get trust(): TrustMessage | null {
    return this.#session?.registered === true ? this.#trust : null;
  }

  /** Tells the coordinator what can be had at this moment, and what of it is in memory. */
  announceModels(): void {
    if (this.#session?.registered === true) this.#session.send({ type: 'models', models: this.models.offers() });
  }

  #connect(): void {
    const { log, socketUrl } = this.options;
    const providerId = providerIdOf(this.enclave.publicKey);
    const enrolment = this.options.enrol ? this.#enrolment() : null;
    const { models } = this;
    log.info(
      { event: 'starting', provider_id: providerId, models: [...models.ids()], slots: models.slots, coordinator: socketUrl },
      'provider is starting',
    );
    this.#connected = stayConnected(
      {
        url: socketUrl,
        enclave: this.enclave,
        presence: {
          agentVersion: agentVersion(),
          hardware: hardwareOf(this.host),
          models: () => models.offers(),
          slots: models.slots,
        },
        intake: (session, keys) => {
          this.#session = session;
          this.#jobs = new Jobs({
            providerId,
            keys,
            enclave: this.enclave,
            slots: models.slots,
            modelIds: () => models.ids(),
            lease: (id, signal) => leaseModel(models, id, signal),
            send: (message) => session.send(message),
            sendFrame: (bytes, sent) => session.sendFrame(bytes, sent),
            onEnd: (event) => {
              this.#connection.job(outcomeOf(event));
              logJob(log, event);
            },
            machine: () => machineState(this.#condition.condition),
          });
          return this.#jobs;
        },
        onRegistered: (_session, trustLevel, token) => {
          this.#connection.registered(token);
          log.info({ event: 'registered', trust_level: trustLevel }, 'registered with the coordinator');
          // Models may have come or gone between the register message and its answer.
          this.announceModels();
          this.#jobs?.reportMachine();
        },
        onTrust: (trust) => {
          this.#trust = trust;
          logTrust(log, trust);
          enrolment?.onTrust(trust);
        },
        onModelsRefused: (refused) => logRefusedModels(log, refused),
        onEnrolment: (answer) => enrolment?.onAnswer(answer),
        onClockSkew: (ms, large) => {
          this.#connection.clockSkewMs = ms;
          const text = "the clock of this machine differs from the coordinator's; jobs may be refused as expired";
          if (large) log.warn({ event: 'clock_skew', ms }, text);
        },
        wakes: this.#wakes,
        onEvent: (event) => {
          this.#connection.ended(event.type === 'lost' ? event.reason : `${event.reason ?? event.code}. ${event.advice}`, event.retryInMs);
          logSession(log, event);
        },
      },
      this.#leave.signal,
    );
  }

  #enrolment(): Enrolment {
    const { log, simulatedManagement } = this.options;
    const enrolment = new Enrolment({
      send: (message) => {
        if (this.#session?.registered === true) this.#session.send(message);
      },
      install: simulatedManagement === null ? null : simulatedInstaller(simulatedManagement, this.#leave.signal),
      onEvent: (event) => logEnrolment(log, event),
    });
    this.#leave.signal.addEventListener('abort', () => enrolment.stop(), { once: true });
    return enrolment;
  }
}

function helperCommand(options: DaemonOptions): readonly string[] {
  const dataDir = join(options.dataDir, 'enclave');
  if (options.simulatedEnclave) return simulatedHelperCommand({ dataDir });
  if (process.platform !== 'darwin') {
    throw new StartError('there is no Secure Enclave on this machine; for a simulated network start with --simulated-enclave');
  }
  const command = nativeHelperCommand({ dataDir });
  if (command === null) throw new StartError('the enclave helper has not been built; build it first, or start with --simulated-enclave');
  return command;
}

async function confinementOf({ hardening }: Config): Promise<Confinement> {
  if (hardening.engine_network === 'deny') return await findConfinement();
  return { kind: 'none', why: 'the settings allow it the network (hardening.engine_network)', wrap: [] };
}

function makeDataDir(dataDir: string): void {
  try {
    mkdirSync(join(dataDir, 'enclave'), { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new StartError(`the data directory ${dataDir} cannot be written (${(error as NodeJS.ErrnoException).code})`);
  }
}

function hardwareOf(host: HostFacts): Hardware {
  return {
    chip_family: cleanLabel(host.chipFamily, 64, 'unknown'),
    cpu_cores: host.cpuCores,
    gpu_cores: host.gpuCores,
    bandwidth_gbs: host.bandwidthGbs,
  };
}
