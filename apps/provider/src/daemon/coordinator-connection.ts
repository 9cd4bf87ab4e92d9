/**
 * The daemon's side towards the coordinator: the session that stands, the jobs that come on it, what the coordinator said last of this
 * machine, and the sign-in and enrolment that go over it. What it serves and with what is wired in `daemon.ts`.
 */
import type { Enclave } from '@inference/enclave';
import { AVAILABILITY_VERSION, type ModelOffer, type ProviderId, type ProviderMessage, type TrustMessage } from '@inference/protocol';
import { providerIdOf } from '@inference/protocol/crypto';
import { DutyRecorder } from '../account/duty.js';
import { MachineLink } from '../account/machine-link.js';
import type { DaemonStatus } from '../control/daemon-status.js';
import type { LinkStatus } from '../control/link-status.js';
import type { AttendanceStatus } from '../host/availability/availability-controller.js';
import type { HostFacts } from '../host/hardware/host-facts.js';
import type { ServedModels } from '../serving/served-models.js';
import { Enrolment, simulatedInstaller } from '../session/enrolment.js';
import type { Session } from '../session/session.js';
import { stayConnected } from '../session/stay-connected.js';
import { Wakes } from '../session/wake-detector.js';
import { agentVersion } from '../version.js';
import { OutputForms } from '../work/form/output-forms.js';
import { Jobs } from '../work/jobs.js';
import { leaseModel } from '../work/model-lease.js';
import type { SealingKeys } from '../work/sealing-keys.js';
import { toldAvailability } from './availability-report.js';
import { ConnectionLog } from './connection-log.js';
import { coordinatorUrl } from './coordinator-view.js';
import { logEnrolment, logJob, logLink, logRefusedModels, logSession, logTrust } from './daemon-log.js';
import type { DaemonOptions } from './daemon-options.js';
import { hardwareStatus, toldHardware } from './hardware.js';
import type { OpenAttendance } from './host-availability.js';
import { machineState, outcomeOf } from './status.js';

/** What running jobs get when this machine leaves: those that may be finished, and those that have begun when there is hurry. */
const LEAVING = { graceMs: 10 * 60_000, hurryMs: 10_000 };
/** How long a command waits for what the coordinator says to a new sign-in, in milliseconds. */
const LINK_MS = 5_000;
/** The agent pins its engine, so that its version stands for the engine's build. */
const ENGINE_BUILD = `${agentVersion()} ${process.platform} ${process.arch}`;

export interface CoordinatorConnectionOptions {
  readonly daemon: Pick<DaemonOptions, 'dataDir' | 'drainMs' | 'enrol' | 'log' | 'simulatedManagement' | 'socketUrl'>;
  readonly models: ServedModels;
  readonly host: HostFacts;
  readonly enclave: Enclave;
  readonly attendance: OpenAttendance;
}

/** Connects at once, and again whenever the session ends, until it is left. */
export class CoordinatorConnection {
  readonly providerId: ProviderId;
  readonly #options: CoordinatorConnectionOptions;
  readonly #leave = new AbortController();
  readonly #log = new ConnectionLog();
  readonly #forms = new OutputForms();
  readonly #wakes = new Wakes();
  readonly #link: MachineLink;
  readonly #enrolment: Enrolment | null;
  readonly #duty: DutyRecorder;
  readonly #connected: Promise<void>;
  #session: Session | null = null;
  #jobs: Jobs | null = null;
  #trust: TrustMessage | null = null;

  constructor(options: CoordinatorConnectionOptions) {
    this.#options = options;
    const { daemon, enclave, models } = options;
    const { dataDir, log, socketUrl } = daemon;
    this.providerId = providerIdOf(enclave.publicKey);
    this.#wakes.on(({ jumpMs }) => log.info({ event: 'woke', jump_ms: jumpMs }, 'this machine has slept, or its clock was set'));
    this.#enrolment = daemon.enrol ? this.#openEnrolment() : null;
    this.#link = this.#openLink();
    this.#duty = new DutyRecorder({ dataDir, look: () => ({ connected: this.registered, busy: (this.#jobs?.active ?? 0) > 0 }) });
    log.info(
      { event: 'starting', provider_id: this.providerId, models: [...models.ids()], slots: models.slots, coordinator: socketUrl },
      'provider is starting',
    );
    this.#connected = this.#stayConnected();
  }

  get registered(): boolean {
    return this.#session?.registered === true;
  }

  /** The provider's token of this registration, for its owner's questions. */
  get token(): ConnectionLog['token'] {
    return this.#log.token;
  }

  /** Its part of the daemon's status. */
  get status() {
    return {
      provider_id: this.providerId,
      connection: this.#log.connection,
      clock_skew_ms: this.#log.clockSkewMs,
      // Null while it is not registered.
      trust: this.registered ? this.#trust : null,
      account: this.#link.status,
      hardware: hardwareStatus(this.#options.host, this.#jobs?.rates ?? { decodeTps: null, prefillTps: null }),
      running_jobs: this.#jobs?.active ?? 0,
      jobs: this.#log.jobs,
    } satisfies Partial<DaemonStatus>;
  }

  /** The owner has signed in or out. */
  async signInChanged(): Promise<LinkStatus> {
    this.#link.show();
    return this.#link.settled(LINK_MS);
  }

  /** Tells the coordinator what can be had at this moment, and what of it is in memory. */
  announceModels(): void {
    if (this.#session !== null) this.#send({ type: 'models', models: this.#offers(this.#session.version) });
  }

  /** Tells the coordinator whether jobs may come. */
  announceAvailability(status: AttendanceStatus): void {
    if (this.#session === null) return;
    if (this.#session.version >= AVAILABILITY_VERSION) this.#send({ type: 'availability', ...toldAvailability(status) });
    else this.announceModels();
  }

  reportMachine(): void {
    if (this.registered) this.#jobs?.reportMachine();
  }

  /** Finishes or hands back what runs. */
  async stepAside(hurry: AbortSignal, stay: AbortSignal): Promise<void> {
    await this.#jobs?.stepAside(LEAVING, hurry, stay);
  }

  /** Takes no more jobs, lets running ones finish for a while or until `hurry`, and leaves. */
  async close(hurry?: AbortSignal): Promise<void> {
    if (this.registered) await this.#jobs?.drain(this.#options.daemon.drainMs, hurry);
    this.#leave.abort();
    this.#link.stop();
    this.#duty.close();
    this.#wakes.close();
    await this.#connected;
    await this.#forms.close();
  }

  /** False where the machine is not registered, and nothing was sent. */
  #send(message: ProviderMessage): boolean {
    if (this.#session?.registered !== true) return false;
    this.#session.send(message);
    return true;
  }

  /** A coordinator that knows nothing of availability is told of no models while there is none to be had. */
  #offers(version: number): ModelOffer[] {
    const { attendance, models } = this.#options;
    return version < AVAILABILITY_VERSION && attendance.status.state !== 'serving' ? [] : models.offers();
  }

  #stayConnected(): Promise<void> {
    const { attendance, daemon, enclave, host, models } = this.#options;
    const { log } = daemon;
    return stayConnected(
      {
        url: daemon.socketUrl,
        enclave,
        presence: {
          agentVersion: agentVersion(),
          hardware: toldHardware(host),
          models: (version) => this.#offers(version),
          // What is served may be something else when it connects again.
          get slots() {
            return models.slots;
          },
          availability: () => toldAvailability(attendance.status),
        },
        intake: (session, keys) => {
          this.#session = session;
          this.#jobs = this.#jobsOf(session, keys);
          return this.#jobs;
        },
        onRegistered: (_session, trustLevel, token) => {
          this.#log.registered(token);
          log.info({ event: 'registered', trust_level: trustLevel }, 'registered with the coordinator');
          // Models may have come or gone between the register message and its answer, and the time to serve as well.
          this.announceAvailability(attendance.status);
          this.announceModels();
          this.#jobs?.reportMachine();
          this.#link.show();
        },
        onLink: (answer) => this.#link.onAnswer(answer),
        onTrust: (trust) => {
          this.#trust = trust;
          logTrust(log, trust);
          this.#enrolment?.onTrust(trust);
        },
        onModelsRefused: (refused) => logRefusedModels(log, refused),
        onEnrolment: (answer) => this.#enrolment?.onAnswer(answer),
        onClockSkew: (ms, large) => {
          this.#log.clockSkewMs = ms;
          const text = "the clock of this machine differs from the coordinator's; jobs may be refused as expired";
          if (large) log.warn({ event: 'clock_skew', ms }, text);
        },
        wakes: this.#wakes,
        onEvent: (event) => {
          this.#link.disconnected();
          this.#log.ended(event.type === 'lost' ? event.reason : `${event.reason ?? event.code}. ${event.advice}`, event.retryInMs);
          logSession(log, event);
        },
      },
      this.#leave.signal,
    );
  }

  #jobsOf(session: Session, keys: SealingKeys): Jobs {
    const { attendance, daemon, enclave, models } = this.#options;
    return new Jobs({
      providerId: this.providerId,
      keys,
      enclave,
      forms: this.#forms,
      slots: models.slots,
      modelIds: () => models.ids(),
      lease: (id, signal) => leaseModel(models, id, ENGINE_BUILD, signal),
      receiptVersion: session.receiptVersion,
      send: (message) => session.send(message),
      sendFrame: (bytes, sent) => session.sendFrame(bytes, sent),
      onEnd: (event) => {
        this.#log.job(outcomeOf(event));
        logJob(daemon.log, event);
      },
      machine: () => machineState(attendance.condition),
      away: () => (attendance.status.state === 'serving' ? null : session.version >= AVAILABILITY_VERSION ? 'away' : 'busy'),
    });
  }

  #openLink(): MachineLink {
    const { dataDir, socketUrl, log } = this.#options.daemon;
    return new MachineLink({
      dataDir,
      coordinator: coordinatorUrl(socketUrl),
      send: (message) => this.#send(message),
      onChange: (status) => logLink(log, status),
    });
  }

  #openEnrolment(): Enrolment {
    const { log, simulatedManagement } = this.#options.daemon;
    const enrolment = new Enrolment({
      send: (message) => void this.#send(message),
      install: simulatedManagement === null ? null : simulatedInstaller(simulatedManagement, this.#leave.signal),
      onEvent: (event) => logEnrolment(log, event),
    });
    this.#leave.signal.addEventListener('abort', () => enrolment.stop(), { once: true });
    return enrolment;
  }
}
