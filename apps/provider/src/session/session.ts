/**
 * `Session`: one WebSocket connection to the coordinator, from `hello` to close.
 *
 * Registers this provider, answers challenges, renews the sealing key, and passes other messages to the callbacks of `SessionOptions`.
 */
import type { Enclave } from '@inference/enclave';
import {
  AVAILABILITY_VERSION,
  CLOCK_TOLERANCE_MS,
  type CoordinatorMessage,
  commonReceiptVersion,
  type Frame,
  fromBase64,
  type Hardware,
  type ModelOffer,
  type ModelsRefused,
  type OwnerCommand,
  PROTOCOL_VERSIONS,
  type ProviderMessage,
  REMOTE_CONTROL_VERSIONS,
  type RejectionCode,
  type ReportedAvailability,
  type TrustMessage,
} from '@inference/protocol';
import { sha256Hex } from '@inference/protocol/crypto';
import { SealingKeys } from '../jobs/sealing-keys.js';
import { Connection, type Liveness } from './connection.js';
import type { WakeDetector } from './wake-detector.js';

interface RegistrationInfo {
  readonly agentVersion: string;
  readonly hardware: Hardware;
  /** Offers for a protocol version. */
  readonly models: (version: number) => readonly ModelOffer[];
  readonly slots: number;
  /** Availability at registration. Absent: available. */
  readonly availability?: () => ReportedAvailability;
  /** Whether the owner permits commands from the console. Absent if the agent supports no commands. */
  readonly isRemoteControlAllowed?: () => boolean;
}

interface JobHandler {
  handle(message: CoordinatorMessage & { type: 'job' | 'credit' | 'cancel' }): void;
  frame(frame: Frame): void;
  /** Called after the session ended, when nothing can be sent any more. */
  abandon(): void;
}

export type SessionEnd =
  | { readonly kind: 'rejected'; readonly code: RejectionCode; readonly reason: string | null; readonly message: string }
  | { readonly kind: 'lost'; readonly reason: string };

export type EndedSession = SessionEnd & {
  readonly registered: boolean;
  /** Whether the coordinator belongs to a cluster, so that the provider can connect elsewhere at once. */
  readonly hasPeers: boolean;
};

export interface SessionOptions {
  readonly url: string;
  readonly enclave: Enclave;
  readonly registration: RegistrationInfo;
  readonly createJobHandler: (session: Session, keys: SealingKeys) => JobHandler;
  /** `token` authorizes status requests while the session lives; null if the coordinator gives none. */
  readonly onRegistered: (session: Session, trustLevel: string, token: string | null) => void;
  readonly onTrust?: (trust: TrustMessage) => void;
  /** Called with the models that the coordinator refuses. An empty list ends earlier refusals. */
  readonly onModelsRefused?: (models: ModelsRefused['models']) => void;
  /** This machine's clock minus the coordinator's clock, and whether the difference endangers jobs. */
  readonly onClockSkew?: (milliseconds: number, isLarge: boolean) => void;
  readonly onEnrolment?: (answer: CoordinatorMessage & { type: 'enrolment' | 'enrolment_refused' }) => void;
  readonly onLink?: (answer: CoordinatorMessage & { type: 'linked' | 'link_refused' }) => void;
  readonly onOwnerCommand?: (command: OwnerCommand) => void;
  readonly liveness?: Liveness;
  /** Maximum time from the start to `welcome`. Absent: only the time to register is limited. */
  readonly welcomeTimeoutMs?: number;
  /** Emits after system sleep. */
  readonly wakeDetector?: Pick<WakeDetector, 'on'>;
}

/** Maximum time from the start to `registered`. */
const REGISTER_TIMEOUT_MS = 30_000;

export class Session {
  readonly #ended: Promise<SessionEnd>;
  #end: (end: SessionEnd) => void = () => {};
  #connection: Connection | null = null;
  #keys: SealingKeys | null = null;
  #jobHandler: JobHandler | null = null;
  #sessionId: string | null = null;
  #isRegistered = false;
  #version = 0;
  #receiptVersion: 1 | 2 = 1;
  #hasPeers = false;
  #hasRemoteControl = false;
  /** Ignored messages of unknown types. */
  unknownMessageCount = 0;

  private constructor(private readonly options: SessionOptions) {
    this.#ended = new Promise((resolve) => (this.#end = resolve));
  }

  /** Runs one session to its end; `signal` closes it. Never rejects; resolves with the reason. */
  static async run(options: SessionOptions, signal: AbortSignal): Promise<EndedSession> {
    const session = new Session(options);
    const unsubscribe = options.wakeDetector?.on(() => session.wake());
    const registrationDeadline = setTimeout(() => {
      if (!session.#isRegistered) session.#connection?.end('the coordinator did not register this provider in time');
    }, REGISTER_TIMEOUT_MS);
    const welcomeDeadline =
      options.welcomeTimeoutMs === undefined ? undefined : setTimeout(() => session.#endUnlessWelcomed(), options.welcomeTimeoutMs);
    try {
      const end = await session.#run(signal);
      return { ...end, registered: session.#isRegistered, hasPeers: session.#hasPeers };
    } finally {
      clearTimeout(registrationDeadline);
      clearTimeout(welcomeDeadline);
      unsubscribe?.();
      session.#dispose();
    }
  }

  get isRegistered(): boolean {
    return this.#isRegistered && this.#connection?.isClosed === false;
  }

  /** Highest receipt version of both sides; 1 before `welcome`. */
  get receiptVersion(): 1 | 2 {
    return this.#receiptVersion;
  }

  /** Protocol version; 0 before `welcome`. */
  get version(): number {
    return this.#version;
  }

  get hasRemoteControl(): boolean {
    return this.#hasRemoteControl;
  }

  send(message: ProviderMessage): void {
    this.#connection?.send(message);
  }

  /** See {@link Connection.sendFrame}. */
  sendFrame(bytes: Uint8Array, sent: () => void): void {
    if (this.#connection === null) sent();
    else this.#connection.sendFrame(bytes, sent);
  }

  /** Call after system sleep or a clock change: the socket may be dead, and the sealing key expired. */
  wake(): void {
    this.#connection?.probe('this machine has slept, and the coordinator is silent');
    this.#keys?.replace();
  }

  close(): void {
    this.#connection?.close();
  }

  async #run(signal: AbortSignal): Promise<SessionEnd> {
    const { url, registration, liveness, welcomeTimeoutMs } = this.options;
    const onAbort = () => this.close();
    try {
      this.#connection = await Connection.open(
        url,
        {
          onMessage: (message) => this.#receive(message),
          onFrame: (frame) => this.#jobHandler?.frame(frame),
          onUnknownMessage: () => (this.unknownMessageCount += 1),
          onClosed: (reason) => this.#end({ kind: 'lost', reason }),
        },
        signal,
        { ...(liveness === undefined ? {} : { liveness }), ...(welcomeTimeoutMs === undefined ? {} : { timeoutMs: welcomeTimeoutMs }) },
      );
      signal.addEventListener('abort', onAbort, { once: true });
      this.send({
        type: 'hello',
        versions: [...PROTOCOL_VERSIONS],
        agent: { name: 'inference-provider', version: registration.agentVersion },
      });
      return await this.#ended;
    } catch (error) {
      return { kind: 'lost', reason: error instanceof Error ? error.message : 'the connection failed' };
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }

  #receive(message: CoordinatorMessage): void {
    switch (message.type) {
      case 'welcome':
        this.#endIfFails(this.#register(message));
        return;
      case 'registered':
        this.#isRegistered = true;
        this.options.onRegistered(this, message.trust_level, message.token ?? null);
        return;
      case 'trust':
        this.options.onTrust?.(message);
        return;
      case 'models_refused':
        this.options.onModelsRefused?.(message.models);
        return;
      case 'rejected':
        this.#end({ kind: 'rejected', code: message.code, reason: message.reason ?? null, message: message.message });
        this.#connection?.close();
        return;
      case 'challenge':
        this.#endIfFails(this.#answerChallenge(message.nonce));
        return;
      case 'job':
      case 'credit':
      case 'cancel':
        this.#jobHandler?.handle(message);
        return;
      case 'enrolment':
      case 'enrolment_refused':
        this.options.onEnrolment?.(message);
        return;
      case 'linked':
      case 'link_refused':
        this.options.onLink?.(message);
        return;
      case 'owner_command':
        if (this.isRegistered) this.options.onOwnerCommand?.(message);
        return;
      default:
        message satisfies never;
    }
  }

  async #register(welcome: CoordinatorMessage & { type: 'welcome' }): Promise<void> {
    const { enclave, registration } = this.options;
    if (!PROTOCOL_VERSIONS.includes(welcome.version))
      throw new Error(`the coordinator speaks version ${welcome.version}, this build does not`);
    if (this.#sessionId !== null) throw new Error('the coordinator said welcome twice');
    // Only coordinators of a cluster state a heartbeat interval.
    if (welcome.heartbeat_ms !== undefined) {
      this.#hasPeers = true;
      this.#connection?.setHeartbeat(welcome.heartbeat_ms);
    }
    this.#sessionId = welcome.session_id;
    this.#hasRemoteControl = welcome.remote_control_versions?.some((version) => REMOTE_CONTROL_VERSIONS.includes(version)) === true;
    this.#version = welcome.version;
    this.#receiptVersion = commonReceiptVersion(welcome.receipts, enclave.receiptVersions);
    const skew = Date.now() - welcome.server_time;
    this.options.onClockSkew?.(skew, Math.abs(skew) > CLOCK_TOLERANCE_MS / 2);
    const [attestation, challenge] = await Promise.all([
      enclave.attest({ version: registration.agentVersion }),
      enclave.answerChallenge(welcome.nonce, welcome.session_id),
    ]);
    const attestationSha256 = sha256Hex(fromBase64(attestation.payload));
    const keys = await SealingKeys.open({
      enclave,
      attestationSha256,
      onUpdate: (key) => this.send({ type: 'key_update', key }),
      onFailure: () => this.#connection?.end('the enclave did not sign a new sealing key'),
    });
    this.#keys = keys;
    // The connection may have ended while the enclave signed.
    if (this.#connection?.isClosed !== false) return;
    this.#jobHandler = this.options.createJobHandler(this, keys);
    this.send({
      type: 'register',
      attestation,
      challenge,
      key: keys.statement,
      hardware: registration.hardware,
      models: [...registration.models(welcome.version)],
      slots: registration.slots,
      fallback_models: true,
      choices: true,
      ...(enclave.e2eReceiptVersions.includes(1) ? { e2e_versions: [1] } : {}),
      ...(this.#receiptVersion === 1 ? {} : { receipt_version: this.#receiptVersion }),
      ...(registration.availability === undefined || welcome.version < AVAILABILITY_VERSION
        ? {}
        : { availability: registration.availability() }),
      ...(registration.isRemoteControlAllowed === undefined
        ? {}
        : { remote_control: { versions: [...REMOTE_CONTROL_VERSIONS], allowed: registration.isRemoteControlAllowed() } }),
    });
  }

  #endUnlessWelcomed(): void {
    if (this.#sessionId === null) this.#connection?.end('the coordinator did not answer in time');
  }

  async #answerChallenge(nonce: string): Promise<void> {
    if (this.#sessionId === null) throw new Error('the coordinator sent a challenge before welcome');
    const challenge = await this.options.enclave.answerChallenge(nonce, this.#sessionId);
    this.send({ type: 'challenge_answer', challenge });
  }

  /** Ends the session if the answer to the coordinator fails: the coordinator would wait for it in vain. */
  #endIfFails(answer: Promise<void>): void {
    answer.catch((error: unknown) => this.#connection?.end(error instanceof Error ? error.message : 'an answer could not be created'));
  }

  #dispose(): void {
    this.#connection?.end('the session is over');
    this.#jobHandler?.abandon();
    this.#keys?.close();
  }
}
