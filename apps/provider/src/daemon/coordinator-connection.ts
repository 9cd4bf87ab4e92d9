/** `CoordinatorConnection`: the daemon's part that talks to the coordinator: sessions, jobs, account link and enrolment. Reconnects until closed. */
import type { Enclave } from '@inference/enclave';
import {
  AVAILABILITY_VERSION,
  type MachineSettings,
  type ModelOffer,
  type ProviderId,
  type ProviderMessage,
  type TrustMessage,
} from '@inference/protocol';
import { providerIdOf } from '@inference/protocol/crypto';
import { DutyCycleRecorder } from '../account/duty-cycle.js';
import { LinkClient } from '../account/link-client.js';
import type { DaemonStatus } from '../control/daemon-status.js';
import type { LinkStatus } from '../control/link-status.js';
import type { CurrentAvailability } from '../host/availability/availability-controller.js';
import type { HostFacts } from '../host/hardware/host-facts.js';
import { ConstraintCompiler } from '../jobs/constraint/constraint-compiler.js';
import { leaseModel } from '../jobs/model-lease.js';
import type { SealingKeys } from '../jobs/sealing-keys.js';
import type { ModelPool } from '../jobs/serving/model-pool.js';
import { SessionJobs } from '../jobs/session-jobs.js';
import type { NotificationEvent } from '../notifications/notification-policy.js';
import { Enrolment, simulatedInstaller } from '../session/enrolment.js';
import { LogMonitor } from '../session/log-monitor.js';
import type { Session, SessionOptions } from '../session/session.js';
import { type SessionEvent, stayConnected } from '../session/stay-connected.js';
import { WakeDetector } from '../session/wake-detector.js';
import { agentVersion } from '../version.js';
import { ConnectionState } from './connection-state.js';
import { coordinatorUrl } from './coordinator-view.js';
import {
  logContradictedLog,
  logEnrolment,
  logJob,
  logLink,
  logModelsRefusedByCoordinator,
  logOtherLogHead,
  logSession,
  logTrust,
} from './daemon-log.js';
import type { DaemonOptions } from './daemon-options.js';
import { hardwareStatus, reportedHardware } from './hardware.js';
import { type HostAvailability, reportedAvailability } from './host-availability.js';
import type { RemoteControl } from './remote-control.js';
import { machineState, notifiedOutcome, outcomeOf } from './status.js';

/** Time for running jobs when this machine stops serving. `forcedMs`: for jobs with output, if jobs are handed back. */
const DRAIN_LIMITS = { graceMs: 10 * 60_000, forcedMs: 10_000 };
/** Time that a command waits for the coordinator's answer to a new sign-in. */
const LINK_TIMEOUT_MS = 5_000;
const SETTINGS_INTERVAL_MS = 10_000;
/** Identifies the engine build: each agent version pins one engine version. */
const ENGINE_BUILD = `${agentVersion()} ${process.platform} ${process.arch}`;

interface CoordinatorConnectionOptions {
  readonly daemon: Pick<DaemonOptions, 'dataDir' | 'drainMs' | 'enrol' | 'log' | 'simulatedEnclave' | 'simulatedManagement' | 'socketUrl'>;
  readonly models: ModelPool;
  readonly host: HostFacts;
  readonly enclave: Enclave;
  readonly availability: HostAvailability;
  readonly remoteControl: RemoteControl;
  readonly machineSettings: () => MachineSettings;
  readonly notify: (event: NotificationEvent) => void;
}

export class CoordinatorConnection {
  readonly providerId: ProviderId;
  readonly #options: CoordinatorConnectionOptions;
  readonly #abort = new AbortController();
  readonly #state = new ConnectionState();
  readonly #constraints = new ConstraintCompiler();
  readonly #wakeDetector = new WakeDetector();
  readonly #link: LinkClient;
  readonly #enrolment: Enrolment | null;
  readonly #dutyCycle: DutyCycleRecorder;
  readonly #logMonitor: LogMonitor;
  readonly #connected: Promise<void>;
  #session: Session | null = null;
  /** Jobs of the newest session, also after its end. */
  #jobs: SessionJobs | null = null;
  #trust: TrustMessage | null = null;
  #enrolmentOffer: DaemonStatus['enrolment'] | null = null;
  /** Settings that were sent in the current session, as JSON. Empty: none yet. */
  #announcedSettings = '';
  readonly #settingsTimer: NodeJS.Timeout;

  constructor(options: CoordinatorConnectionOptions) {
    this.#options = options;
    const { daemon, enclave, models } = options;
    const { dataDir, log, socketUrl } = daemon;
    this.providerId = providerIdOf(enclave.publicKey);
    this.#wakeDetector.on(({ jumpMs }) =>
      log.info({ event: 'woke', jump_ms: jumpMs }, 'this machine was asleep, or its clock was changed'),
    );
    this.#enrolment = daemon.enrol ? this.#openEnrolment() : null;
    this.#link = this.#openLink();
    this.#logMonitor = new LogMonitor({
      coordinator: coordinatorUrl(socketUrl),
      onContradiction: (reason) => logContradictedLog(log, reason),
      onOtherHead: () => logOtherLogHead(log),
    });
    this.#dutyCycle = new DutyCycleRecorder({
      dataDir,
      sample: () => ({ connected: this.isRegistered, busy: (this.#jobs?.active ?? 0) > 0 }),
    });
    log.info(
      { event: 'starting', provider_id: this.providerId, models: [...models.ids()], slots: models.slots, coordinator: socketUrl },
      'provider is starting',
    );
    // Commands such as `models pull` do not tell the daemon.
    this.#settingsTimer = setInterval(() => this.announceSettings(), SETTINGS_INTERVAL_MS).unref();
    this.#connected = this.#stayConnected();
  }

  get isRegistered(): boolean {
    return this.#session?.isRegistered === true;
  }

  /** Session token for status requests; null if not registered, or if the coordinator gave none. */
  get token(): ConnectionState['token'] {
    return this.#state.token;
  }

  get status() {
    return {
      provider_id: this.providerId,
      connection: this.#state.connection,
      clock_skew_ms: this.#state.clockSkewMs,
      trust: this.isRegistered ? this.#trust : null,
      ...(this.#enrolmentOffer == null ? {} : { enrolment: this.#enrolmentOffer }),
      account: this.#link.status,
      hardware: hardwareStatus(this.#options.host, this.#jobs?.rates ?? { decodeTps: null, prefillTps: null }),
      running_jobs: this.#jobs?.active ?? 0,
      jobs: this.#state.jobs,
    } satisfies Partial<DaemonStatus>;
  }

  /** Call after the owner signed in or out. Waits up to `LINK_TIMEOUT_MS` for an answer. */
  async signInChanged(): Promise<LinkStatus> {
    this.#link.sendToken();
    return this.#link.settled(LINK_TIMEOUT_MS);
  }

  /** Sends the current offers, and which models are loaded. */
  announceModels(): void {
    if (this.#session !== null) this.#send({ type: 'models', models: this.#offers(this.#session.version) });
  }

  /** Sends whether this machine takes jobs. */
  announceAvailability(status: CurrentAvailability): void {
    if (this.#session === null) return;
    if (this.#session.version >= AVAILABILITY_VERSION) this.#send({ type: 'availability', ...reportedAvailability(status) });
    else this.announceModels();
  }

  /** Sends the settings that the console shows, if they differ from those sent last. */
  announceSettings(): void {
    if (this.#session?.hasRemoteControl !== true || !this.isRegistered) return;
    const settings = this.#options.machineSettings();
    const text = JSON.stringify(settings);
    if (text === this.#announcedSettings) return;
    this.#announcedSettings = text;
    this.#send({ type: 'machine_settings', settings });
  }

  reportMachine(): void {
    if (this.isRegistered) this.#jobs?.reportMachine();
  }

  /** Finishes or hands back the running jobs. The session stays connected. */
  async drain(force: AbortSignal, cancel: AbortSignal): Promise<void> {
    await this.#jobs?.drainForAbsence(DRAIN_LIMITS, force, cancel);
  }

  /** Accepts no more jobs, lets running jobs finish until the drain timeout or `force`, and disconnects. */
  async close(force?: AbortSignal): Promise<void> {
    if (this.isRegistered) await this.#jobs?.drain(this.#options.daemon.drainMs, force);
    this.#abort.abort();
    clearInterval(this.#settingsTimer);
    this.#link.stop();
    this.#logMonitor.close();
    this.#dutyCycle.close();
    this.#wakeDetector.close();
    await this.#connected;
    await this.#constraints.close();
  }

  /** Returns false and sends nothing if not registered. */
  #send(message: ProviderMessage): boolean {
    if (this.#session?.isRegistered !== true) return false;
    this.#session.send(message);
    return true;
  }

  /** While this machine is not serving, protocol versions without availability get no offers. */
  #offers(version: number): ModelOffer[] {
    const { availability, models } = this.#options;
    return version < AVAILABILITY_VERSION && !availability.isServing ? [] : models.offers();
  }

  #stayConnected(): Promise<void> {
    const { daemon, enclave } = this.#options;
    const { log } = daemon;
    return stayConnected(
      {
        url: daemon.socketUrl,
        enclave,
        registration: this.#registration(),
        createJobHandler: (session, keys) => {
          this.#session = session;
          this.#jobs = this.#jobsOf(session, keys);
          return this.#jobs;
        },
        onRegistered: (_session, trustLevel, token) => this.#onRegistered(trustLevel, token),
        onLink: (answer) => this.#link.onAnswer(answer),
        onOwnerCommand: (command) => {
          const result = this.#options.remoteControl.execute(command);
          // The result contains the settings, so that they are not sent again.
          this.#announcedSettings = JSON.stringify(result.settings);
          this.#send(result);
        },
        onTrust: (trust) => {
          this.#trust = trust;
          logTrust(log, trust, this.#options.daemon.simulatedEnclave);
          this.#options.notify({ type: 'trust', level: trust.trust_level });
          this.#enrolment?.onTrust(trust);
        },
        onModelsRefused: (refused) => logModelsRefusedByCoordinator(log, refused),
        onEnrolment: (answer) => this.#enrolment?.onAnswer(answer),
        onClockSkew: (ms, isLarge) => {
          this.#state.clockSkewMs = ms;
          const text = "the clock of this machine differs from the coordinator's; requests may be refused as expired";
          if (isLarge) log.warn({ event: 'clock_skew', ms }, text);
        },
        wakeDetector: this.#wakeDetector,
        onEvent: (event) => this.#onSessionEnd(event),
      },
      this.#abort.signal,
    );
  }

  #registration(): SessionOptions['registration'] {
    const { availability, host, models, remoteControl } = this.#options;
    return {
      agentVersion: agentVersion(),
      hardware: reportedHardware(host),
      models: (version) => this.#offers(version),
      // Read at each connection, because the served models can change.
      get slots() {
        return models.slots;
      },
      availability: () => availability.report,
      isRemoteControlAllowed: () => remoteControl.status.allowed,
    };
  }

  #onRegistered(trustLevel: string, token: string | null): void {
    const { availability, daemon, notify } = this.#options;
    this.#state.registered(token);
    notify({ type: 'connected' });
    daemon.log.info({ event: 'registered', trust_level: trustLevel }, 'registered with the coordinator');
    // Models and availability may have changed since the register message.
    this.announceAvailability(availability.current);
    this.announceModels();
    this.#announcedSettings = '';
    this.announceSettings();
    this.#jobs?.reportMachine();
    this.#link.sendToken();
    this.#logMonitor.start();
  }

  #onSessionEnd(event: SessionEvent): void {
    const { daemon, notify } = this.#options;
    this.#link.disconnected();
    this.#state.ended(event.type === 'lost' ? event.reason : `${event.reason ?? event.code}. ${event.advice}`, event.retryInMs);
    logSession(daemon.log, event);
    notify({ type: 'disconnected' });
    if (event.type === 'rejected' && event.code === 'version_unsupported') notify({ type: 'version_unsupported' });
  }

  #jobsOf(session: Session, keys: SealingKeys): SessionJobs {
    const { availability, daemon, enclave, models } = this.#options;
    return new SessionJobs({
      providerId: this.providerId,
      keys,
      enclave,
      constraints: this.#constraints,
      slots: models.slots,
      modelIds: () => models.ids(),
      lease: (id, signal) => leaseModel(models, id, ENGINE_BUILD, signal),
      receiptVersion: session.receiptVersion,
      checkpointFor: (head) => this.#logMonitor.checkpointFor(head),
      send: (message) => session.send(message),
      sendFrame: (bytes, sent) => session.sendFrame(bytes, sent),
      onEnd: (event) => {
        this.#state.countJob(outcomeOf(event));
        logJob(daemon.log, event);
        const outcome = notifiedOutcome(event);
        if (outcome !== null) this.#options.notify({ type: outcome });
      },
      machine: () => machineState(availability.condition),
      away: () => (availability.isServing ? null : session.version >= AVAILABILITY_VERSION ? 'away' : 'busy'),
    });
  }

  #openLink(): LinkClient {
    const { dataDir, socketUrl, log } = this.#options.daemon;
    return new LinkClient({
      dataDir,
      coordinator: coordinatorUrl(socketUrl),
      send: (message) => this.#send(message),
      onChange: (status) => {
        logLink(log, status);
        if (status.state === 'linked') this.#options.notify({ type: 'linked' });
      },
    });
  }

  #openEnrolment(): Enrolment {
    const { log, simulatedManagement } = this.#options.daemon;
    const enrolment = new Enrolment({
      send: (message) => void this.#send(message),
      install: simulatedManagement === null ? null : simulatedInstaller(simulatedManagement, this.#abort.signal),
      onEvent: (event) => {
        if (event.type === 'offered') this.#enrolmentOffer = { state: 'offered', url: event.url, expires_at: event.expiresAt };
        if (event.type === 'refused') this.#enrolmentOffer = { state: 'refused', reason: event.reason };
        logEnrolment(log, event);
      },
    });
    this.#abort.signal.addEventListener('abort', () => enrolment.stop(), { once: true });
    return enrolment;
  }
}
