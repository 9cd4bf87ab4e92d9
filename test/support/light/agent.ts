/**
 * `LightAgent`: a provider without a model, for tests and soaks with thousands of agents in one process.
 *
 * Protocol, sealing and signatures are real. The prompt contains the response as a script; tests can replace the job handling.
 */
import {
  type CoordinatorMessage,
  decodeFrame,
  type ModelOffer,
  type ProviderId,
  type Register,
  type SignedStatement,
  type TrustMessage,
} from '@inference/protocol';
import { generateSealingKeyPair, type SealingKeyPair } from '@inference/protocol/crypto';
import { WebSocket } from 'ws';
import { ReplaySet } from '../../../apps/provider/src/jobs/channel/replay-set.js';
import { SoftwareEnclave } from '../software-enclave.js';
import { LightE2eJob } from './e2e-job.js';
import { LightJob } from './job.js';

/** Keys of one agent. Benches generate keys in advance, outside the measured time. */
export interface LightKeys {
  readonly enclave: SoftwareEnclave;
  readonly sealing: SealingKeyPair;
}

export function makeKeys(): LightKeys {
  return { enclave: new SoftwareEnclave(), sealing: generateSealingKeyPair() };
}

export type Behaviour = (job: LightJob) => void | Promise<void>;

export interface LightOptions {
  /** Address of the coordinator; a function is called for every connection. */
  readonly url: string | (() => string);
  readonly models: readonly string[];
  /** Members of `models` with image input. */
  readonly visionModels?: readonly string[];
  /** Default: 8. */
  readonly slots?: number;
  readonly keys?: LightKeys;
  /** Claimed hardware. */
  readonly hardware?: Partial<Register['hardware']>;
  /** Job handling; default: the honest response. */
  readonly onJob?: Behaviour;
  /** Handling of end-to-end jobs; default: the honest response. */
  readonly onE2eJob?: (job: LightE2eJob) => void | Promise<void>;
  /** Cancel handling of jobs that the coordinator sealed; default: ends the job at its current position. */
  readonly onCancel?: Behaviour;
  /** Commands of the owner at registration. Default: an agent that supports none. */
  readonly remoteControl?: Register['remote_control'];
  /** Connects again after the end of a connection, with a growing, jittered pause. */
  readonly staysConnected?: boolean;
}

const MIN_RECONNECT_PAUSE_MS = 250;
const MAX_RECONNECT_PAUSE_MS = 4000;
const HANDSHAKE_TIMEOUT_MS = 60_000;
/** Time limit for `welcome` in a cluster, doubled after each failure, as in the real agent's `stay-connected.ts`. */
const CLUSTER_WELCOME_MS = 2_000;
const MAX_CLUSTER_WELCOME_MS = 10_000;
/** Fractions of the heartbeat interval, as in the real agent's `connection.ts`. */
const HEARTBEAT = { check: 0.125, ping: 0.75, silence: 1.75 };

export class LightAgent {
  readonly keys: LightKeys;
  readonly providerId: ProviderId;
  /** Attestation sent at registration. */
  readonly attestation: SignedStatement;
  readonly #options: LightOptions;
  readonly #jobs = new Map<string, LightJob | LightE2eJob>();
  /** Jobs seen on the current connection, to detect replays. */
  replays = new ReplaySet();
  #socket: WebSocket | null = null;
  #sessionId = '';
  #left = false;
  #attempt = 0;
  #hasPeers = false;
  #welcomeDeadline: NodeJS.Timeout | undefined;
  #pause: NodeJS.Timeout | null = null;
  #resolveRegistered: () => void = () => {};
  #resolveGone: () => void = () => {};
  /** Totals over all connections. */
  readonly counts = { connections: 0, registrations: 0, jobs: 0, cancels: 0, credits: 0 };
  /** Most concurrent jobs of any connection. */
  maxJobs = 0;
  /** Code and text of the newest `rejected`. */
  rejection: { readonly code: string; readonly message: string } | null = null;
  /** Whether the current connection is registered. */
  isRegistered = false;
  /** Address of the current or last connection. */
  coordinatorUrl = '';
  /** Ends a silent connection, as the real agent does in a cluster. */
  #watch: NodeJS.Timeout | null = null;
  /** Latest trust message from the coordinator. */
  standing: TrustMessage | null = null;
  /** Resolves on the first registration; rejects when the first connection ends earlier. */
  readonly registered: Promise<void>;
  /** Resolves at the end of the first connection. */
  readonly gone: Promise<void>;

  constructor(options: LightOptions) {
    this.#options = options;
    this.keys = options.keys ?? makeKeys();
    this.providerId = this.keys.enclave.providerId;
    this.attestation = this.keys.enclave.attestation();
    this.gone = new Promise((resolve) => {
      this.#resolveGone = resolve;
    });
    this.registered = new Promise((resolve, reject) => {
      this.#resolveRegistered = resolve;
      void this.gone.then(() => reject(new Error(`not registered: ${this.rejection?.message ?? 'the connection ended'}`)));
    });
    this.registered.catch(() => {});
    this.#connect();
  }

  /** Connects and registers. Rejects if the first connection ends before. */
  static async join(options: LightOptions): Promise<LightAgent> {
    const agent = new LightAgent(options);
    await agent.registered;
    return agent;
  }

  get open(): boolean {
    return this.#socket?.readyState === WebSocket.OPEN;
  }

  /** Current connection, for tests that misuse the protocol. */
  get socket(): WebSocket {
    if (this.#socket === null) throw new Error('not connected');
    return this.#socket;
  }

  get runningJobs(): number {
    return this.#jobs.size;
  }

  send(message: object): void {
    if (this.open) this.#socket?.send(JSON.stringify(message));
  }

  sendBytes(bytes: Uint8Array, sent: () => void = () => {}): void {
    if (this.open) this.#socket?.send(bytes, sent);
    else sent();
  }

  /** Replaces the served models. Resolves when the coordinator has processed the change, or the first connection has ended. */
  async serve(models: readonly string[]): Promise<void> {
    this.send({ type: 'models', models: this.offers(models) });
    const answered = new Promise<void>((resolve) => this.socket.once('pong', () => resolve()));
    this.socket.ping();
    await Promise.race([answered, this.gone]);
  }

  /** Closes the connection without a message, and does not reconnect. */
  leave(): void {
    this.#left = true;
    if (this.#pause !== null) clearTimeout(this.#pause);
    this.#socket?.terminate();
  }

  offers(models = this.#options.models): ModelOffer[] {
    const vision = { max_images: 20, max_image_tokens: 64 };
    return models.map((id) => ({
      id,
      model_type: 'text',
      display_name: id,
      quantization: '8bit',
      context_length: 131_072,
      ...(this.#options.visionModels?.includes(id) ? { vision } : {}),
    }));
  }

  #connect(): void {
    const { url } = this.#options;
    this.coordinatorUrl = typeof url === 'string' ? url : url();
    const address = `${this.coordinatorUrl.replace('http', 'ws')}/provider/v1/socket`;
    const socket = new WebSocket(address, { perMessageDeflate: false, handshakeTimeout: HANDSHAKE_TIMEOUT_MS });
    this.#socket = socket;
    if (this.#hasPeers) {
      const timeoutMs = Math.min(MAX_CLUSTER_WELCOME_MS, CLUSTER_WELCOME_MS * 2 ** Math.max(0, this.#attempt - 1));
      this.#welcomeDeadline = setTimeout(() => socket.terminate(), timeoutMs);
    }
    socket.on('open', () => {
      this.counts.connections++;
      this.send({ type: 'hello', versions: [1], agent: { name: 'light', version: '1' } });
    });
    socket.on('message', (data: Buffer, isBinary) => {
      if (isBinary) this.#frame(data);
      else this.#message(JSON.parse(data.toString('utf8')) as CoordinatorMessage);
    });
    // An error is always followed by 'close'.
    socket.on('error', () => {});
    socket.on('close', () => this.#closed());
  }

  #watchSilence(heartbeatMs: number): void {
    const { socket } = this;
    let heardAt = performance.now();
    const heard = (): void => {
      heardAt = performance.now();
    };
    socket.on('message', heard).on('ping', heard).on('pong', heard);
    this.#watch = setInterval(() => {
      const silentMs = performance.now() - heardAt;
      if (silentMs > heartbeatMs * HEARTBEAT.silence) socket.terminate();
      else if (silentMs > heartbeatMs * HEARTBEAT.ping) socket.ping();
    }, heartbeatMs * HEARTBEAT.check);
  }

  #closed(): void {
    this.isRegistered = false;
    clearTimeout(this.#welcomeDeadline);
    if (this.#watch !== null) clearInterval(this.#watch);
    for (const job of this.#jobs.values()) job.abandon();
    this.#jobs.clear();
    this.#resolveGone();
    if (this.#left || this.#options.staysConnected !== true) return;
    const maxPauseMs = Math.min(MAX_RECONNECT_PAUSE_MS, MIN_RECONNECT_PAUSE_MS * 2 ** this.#attempt++);
    this.#pause = setTimeout(() => this.#connect(), maxPauseMs * (0.5 + Math.random() / 2));
  }

  #message(message: CoordinatorMessage): void {
    switch (message.type) {
      case 'welcome':
        this.#sessionId = message.session_id;
        clearTimeout(this.#welcomeDeadline);
        this.#hasPeers = message.heartbeat_ms !== undefined;
        this.replays = new ReplaySet();
        if (message.heartbeat_ms !== undefined) this.#watchSilence(message.heartbeat_ms);
        this.send(this.#register(message.nonce));
        return;
      case 'registered':
        this.#attempt = 0;
        this.counts.registrations++;
        this.isRegistered = true;
        this.#resolveRegistered();
        return;
      case 'challenge':
        this.send({ type: 'challenge_answer', challenge: this.keys.enclave.challengeAnswer(message.nonce, this.#sessionId) });
        return;
      case 'job':
        this.counts.jobs++;
        this.#jobs.set(message.context.job_id, this.#jobOf(message));
        this.maxJobs = Math.max(this.maxJobs, this.#jobs.size);
        return;
      case 'credit':
        this.counts.credits++;
        this.#jobs.get(message.job_id)?.grant(message.bytes);
        return;
      case 'cancel': {
        const job = this.#jobs.get(message.job_id);
        this.counts.cancels++;
        job?.cancel();
        if (job instanceof LightJob) void this.#options.onCancel?.(job);
        return;
      }
      case 'rejected':
        this.rejection = message;
        return;
      case 'trust':
        this.standing = message;
        return;
      default:
    }
  }

  #register(nonce: string): Register {
    const { enclave, sealing } = this.keys;
    return {
      type: 'register',
      attestation: this.attestation,
      challenge: enclave.challengeAnswer(nonce, this.#sessionId),
      key: enclave.keyStatement(sealing.publicKey, this.attestation),
      hardware: { chip_family: 'Light', cpu_cores: 1, gpu_cores: 0, bandwidth_gbs: 0, ...this.#options.hardware },
      models: this.offers(),
      slots: this.#options.slots ?? 8,
      e2e_versions: [1],
      ...(this.#options.remoteControl === undefined ? {} : { remote_control: this.#options.remoteControl }),
    };
  }

  #jobOf({ e2e, ...message }: CoordinatorMessage & { type: 'job' }): LightJob | LightE2eJob {
    return e2e === undefined ? new LightJob(this, message) : new LightE2eJob(this, { ...message, e2e });
  }

  #run(job: LightJob | LightE2eJob): void | Promise<void> {
    const { onJob, onE2eJob } = this.#options;
    if (job instanceof LightE2eJob) return onE2eJob === undefined ? job.answer() : onE2eJob(job);
    return onJob === undefined ? job.answer() : onJob(job);
  }

  #frame(bytes: Buffer): void {
    const frame = decodeFrame(bytes);
    const job = this.#jobs.get(frame.jobId);
    if (job === undefined || !job.open(frame)) return;
    void Promise.resolve(this.#run(job))
      // Abandoned jobs reject. Errors of a test's script show in the client's response.
      .catch(() => {})
      .finally(() => {
        job.dispose();
        this.#jobs.delete(frame.jobId);
      });
  }
}
