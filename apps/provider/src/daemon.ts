/**
 * The provider's daemon: the only place that wires model, engine, enclave and coordinator together. Whatever starts here
 * is ended here, and what went wrong on the way is told once.
 */
import { join } from 'node:path';
import { type Enclave, openEnclave } from '@inference/enclave';
import { AVAILABILITY_VERSION, type ModelOffer, type TrustMessage } from '@inference/protocol';
import { providerIdOf } from '@inference/protocol/crypto';
import { DutyRecorder } from './account/duty.js';
import { MachineLink } from './account/machine-link.js';
import type { AttendanceStatus } from './availability/attendance.js';
import { policyOf } from './availability/policy.js';
import { availabilityStatus, toldAvailability } from './availability-parts.js';
import type { Config } from './config/config.js';
import { configPath, dataDirOf } from './config/data-dir.js';
import { availabilityRoutes } from './control/availability-routes.js';
import { ConnectionLog } from './control/connection-log.js';
import { ControlServer } from './control/control-server.js';
import { coordinatorUrl, fetchCoordinatorView } from './control/coordinator-view.js';
import type { AvailabilityStatus, DaemonStatus, EnclaveCheck } from './control/daemon-status.js';
import { linkRoutes } from './control/link-routes.js';
import type { LinkStatus } from './control/link-status.js';
import { takeMachine } from './control/machine-lock.js';
import { type ModelsChange, modelsRoutes } from './control/models-routes.js';
import { ControlRefusal } from './control/route.js';
import { controlRoutes } from './control/routes.js';
import { confinementOf, helperCommand, hostOf, makeDataDir } from './daemon-ground.js';
import type { DaemonOptions } from './daemon-options.js';
import { systemProblem } from './files/system-error.js';
import { forbidCoreDumps } from './hardening/core-dumps.js';
import { mendModes } from './hardening/secret-modes.js';
import { hardwareStatus, toldHardware } from './hardware-parts.js';
import { type HostFacts, readHostFacts } from './host/host-facts.js';
import {
  logAvailability,
  logEnclave,
  logEnrolment,
  logJob,
  logLink,
  logModel,
  logRefusedModel,
  logRefusedModels,
  logSession,
  logSettings,
  logTrust,
} from './log-daemon.js';
import { FileHashes } from './models/file-hash.js';
import { addOnPath } from './models/library/add-on.js';
import { OpenAttendance } from './open-attendance.js';
import { type OpenedModels, openModels } from './open-models.js';
import { SelfUpdate } from './self-update.js';
import type { ServedModels } from './serving/served-models.js';
import { Enrolment, simulatedInstaller } from './session/enrolment.js';
import type { Session } from './session/session.js';
import { stayConnected } from './session/stay-connected.js';
import { Wakes } from './session/wakes.js';
import { LiveSettings, type SettingsState } from './settings/live-settings.js';
import { startSentence } from './start-error.js';
import { machineState, outcomeOf, startingStatus } from './status-parts.js';
import { installation } from './update/installation.js';
import { agentVersion } from './version.js';
import { Watchdog } from './watchdog/watchdog.js';
import { OutputForms } from './work/form/output-forms.js';
import { Jobs } from './work/jobs.js';
import { leaseModel } from './work/model-lease.js';

/** What running jobs get when this machine leaves: those that may be finished, and those that have begun when there is hurry. */
const LEAVING = { graceMs: 10 * 60_000, hurryMs: 10_000 };
/** How long a command waits for what the coordinator says to a new sign-in, in milliseconds. */
const LINK_MS = 5_000;
const STARTING = 'the provider is still starting; try again in a moment';
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
  #link: MachineLink | null = null;
  #duty: DutyRecorder | null = null;
  readonly #wakes = new Wakes();
  #automaticUpdates: boolean;
  readonly #watchdog = new Watchdog();
  readonly #forms = new OutputForms();
  readonly #settings: LiveSettings;
  readonly #selfUpdate: SelfUpdate;

  private constructor(
    private readonly options: DaemonOptions,
    private readonly control: ControlServer,
    private readonly startedAt: number,
    private readonly models: ServedModels,
    private readonly host: HostFacts,
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
      isRegistered: () => this.#session?.registered === true,
      onRestart: options.onRestart,
      log,
    });
    this.#wakes.on(({ jumpMs }) => log.info({ event: 'woke', jump_ms: jumpMs }, 'this machine has slept, or its clock was set'));
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
        daemon?.reportMachine();
      },
      onChange: (status) => {
        logAvailability(log, status);
        daemon?.announceAvailability(status);
      },
      onAwakeProblem: (reason) => log.warn({ event: 'sleep_not_prevented', reason }, 'the system cannot be kept from going to sleep'),
      leave: async (hurry, stay) => daemon?.stepAside(hurry, stay),
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
        onChange: () => daemon?.announceModels(),
      });
      const { models } = opened;
      for (const one of opened.refused) logRefusedModel(log, one);
      served = models;
      models.setMemoryIsShort(attendance.condition.memoryPressure !== 'normal');
      if (attendance.status.state !== 'serving') await models.rest();
      await models.start(signal);
      const enclave = await openEnclave({ command, onEvent: (event) => logEnclave(log, event) });
      daemon = new Daemon(options, control, startedAt, models, host, enclave, attendance, opened, hardening);
    } catch (error) {
      await Promise.all([attendance.close(), served?.close()]);
      throw error;
    }
    daemon.#connect();
    return daemon;
  }

  /** Takes no more jobs, lets running ones finish for a while or until `hurry`, and ends every child process. */
  async stop(hurry?: AbortSignal): Promise<void> {
    this.#stopping = true;
    await this.attendance.close();
    if (this.#session?.registered === true) await this.#jobs?.drain(this.options.drainMs, hurry);
    this.#leave.abort();
    this.#link?.stop();
    this.#duty?.close();
    this.#settings.close();
    await this.#selfUpdate.close();
    this.#wakes.close();
    await this.#connected;
    await Promise.all([this.models.close(), this.enclave.close(), this.#forms.close(), this.#watchdog.close()]);
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
      account: this.#link?.status ?? startingStatus(this.options, this.startedAt).account,
      engine: offers.length > 0 ? 'ready' : 'down',
      models: offers.map(({ id, context_length }) => ({ id, context_length })),
      slots: this.models.slots,
      availability: this.availability,
      hardware: hardwareStatus(this.host, this.#jobs?.rates ?? { decodeTps: null, prefillTps: null }),
      running_jobs: this.#jobs?.active ?? 0,
      jobs: this.#connection.jobs,
      host: machineState(this.attendance.condition),
      settings: this.#settings.state,
      hardening: this.hardening,
      coordinator_view: view,
      coordinator_problem: problem,
    };
  }

  /** The owner has signed in or out. */
  async signInChanged(): Promise<LinkStatus | null> {
    this.#link?.show();
    return this.#link?.settled(LINK_MS) ?? null;
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

  /** Each part that can change while it runs has its line here; `settings/live-settings.ts` names what they read. */
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

  /** What the coordinator said last of this provider's standing; null while it is not registered. */
  get trust(): TrustMessage | null {
    return this.#session?.registered === true ? this.#trust : null;
  }

  /** Whether it serves, and why not. */
  get availability(): AvailabilityStatus {
    return availabilityStatus(this.attendance);
  }

  /** Tells the coordinator what can be had at this moment, and what of it is in memory. */
  announceModels(): void {
    if (this.#session?.registered === true) this.#session.send({ type: 'models', models: this.#offers(this.#session.version) });
  }

  /** Tells the coordinator whether jobs may come. */
  announceAvailability(status: AttendanceStatus): void {
    if (this.#session?.registered !== true) return;
    if (this.#session.version >= AVAILABILITY_VERSION) this.#session.send({ type: 'availability', ...toldAvailability(status) });
    else this.announceModels();
  }

  reportMachine(): void {
    if (this.#session?.registered === true) this.#jobs?.reportMachine();
  }

  /** Finishes or hands back what runs. */
  async stepAside(hurry: AbortSignal, stay: AbortSignal): Promise<void> {
    await this.#jobs?.stepAside(LEAVING, hurry, stay);
  }

  /** A coordinator that knows nothing of availability is told of no models while there is none to be had. */
  #offers(version: number): ModelOffer[] {
    return version < AVAILABILITY_VERSION && this.attendance.status.state !== 'serving' ? [] : this.models.offers();
  }

  #connect(): void {
    const { log, socketUrl } = this.options;
    const providerId = providerIdOf(this.enclave.publicKey);
    const enrolment = this.options.enrol ? this.#enrolment() : null;
    const { models } = this;
    const link = this.#openLink();
    this.#link = link;
    const look = () => ({ connected: this.#session?.registered === true, busy: (this.#jobs?.active ?? 0) > 0 });
    this.#duty = new DutyRecorder({ dataDir: this.options.dataDir, look });
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
          hardware: toldHardware(this.host),
          models: (version) => this.#offers(version),
          // What is served may be something else when it connects again.
          get slots() {
            return models.slots;
          },
          availability: () => toldAvailability(this.attendance.status),
        },
        intake: (session, keys) => {
          this.#session = session;
          this.#jobs = new Jobs({
            providerId,
            keys,
            enclave: this.enclave,
            forms: this.#forms,
            slots: models.slots,
            modelIds: () => models.ids(),
            lease: (id, signal) => leaseModel(models, id, signal),
            send: (message) => session.send(message),
            sendFrame: (bytes, sent) => session.sendFrame(bytes, sent),
            onEnd: (event) => {
              this.#connection.job(outcomeOf(event));
              logJob(log, event);
            },
            machine: () => machineState(this.attendance.condition),
            away: () => (this.attendance.status.state === 'serving' ? null : session.version >= AVAILABILITY_VERSION ? 'away' : 'busy'),
          });
          return this.#jobs;
        },
        onRegistered: (_session, trustLevel, token) => {
          this.#connection.registered(token);
          log.info({ event: 'registered', trust_level: trustLevel }, 'registered with the coordinator');
          // Models may have come or gone between the register message and its answer, and the time to serve as well.
          this.announceAvailability(this.attendance.status);
          this.announceModels();
          this.#jobs?.reportMachine();
          link.show();
        },
        onLink: (answer) => link.onAnswer(answer),
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
          link.disconnected();
          this.#connection.ended(event.type === 'lost' ? event.reason : `${event.reason ?? event.code}. ${event.advice}`, event.retryInMs);
          logSession(log, event);
        },
      },
      this.#leave.signal,
    );
  }

  #openLink(): MachineLink {
    const { dataDir, socketUrl, log } = this.options;
    return new MachineLink({
      dataDir,
      coordinator: coordinatorUrl(socketUrl),
      send: (message) => {
        if (this.#session?.registered !== true) return false;
        this.#session.send(message);
        return true;
      },
      onChange: (status) => logLink(log, status),
    });
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
