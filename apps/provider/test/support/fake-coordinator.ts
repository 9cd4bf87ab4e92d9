/**
 * `FakeCoordinator`: a coordinator for tests of the agent, over a real WebSocket, without placement.
 *
 * Verifies the provider's registration, seals jobs to the provider, and verifies responses.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import {
  type Attestation,
  type CoordinatorMessage,
  decodeFrame,
  encodeFrame,
  type Frame,
  fromBase64,
  INITIAL_CREDIT_BYTES,
  type JobCompleted,
  type JobContext,
  type JobFailure,
  type JobId,
  type KeyId,
  type KeyStatement,
  openAttestation,
  openChallengeAnswer,
  openKeyStatement,
  openReceipt,
  type ProviderMessage,
  parseProviderMessage,
  REQUEST_CHUNK_BYTES,
  type Receipt,
  type Register,
  type SealedE2eRequest,
  toBase64,
} from '@inference/protocol';
import {
  encapsulate,
  providerIdOf,
  type ResponseOpener,
  sealRequest,
  sha256Hex,
  verifyP256,
  verifyResponseSignature,
} from '@inference/protocol/crypto';
import { type WebSocket, WebSocketServer } from 'ws';
import { addressOf } from '../../../../test/support/local-server.js';

export interface Answer {
  readonly jobId: JobId;
  readonly accepted: boolean;
  readonly body: string;
  /** Number of response frames with content. */
  readonly frames: number;
  readonly failure: JobFailure | null;
  readonly receipt: Receipt | null;
}

export interface SubmitOptions {
  readonly context?: Partial<JobContext>;
  readonly credit?: number;
  /** Whether received bytes are granted as new credit, as for a fast client. Default: true. */
  readonly grant?: boolean;
  readonly cancelAfterBytes?: number;
  /** Called with the first bytes of the answer. */
  readonly onFirstBytes?: () => void;
  /** Called with the content of each frame. */
  readonly onBytes?: (bytes: Uint8Array) => void;
  /** Changes the encoded request frames before sending. */
  readonly tamper?: (frames: Uint8Array[]) => Uint8Array[];
}

/** End of an end-to-end job, as the coordinator sees it. */
export interface RelayedAnswer {
  readonly jobId: JobId;
  readonly accepted: boolean;
  /** The sealed answer. */
  readonly bytes: Uint8Array;
  readonly completed: JobCompleted | null;
  readonly failure: JobFailure | null;
}

export interface RelayOptions {
  /** Index of this provider among the recipients. Default: 0. */
  readonly recipient?: number;
  readonly context?: Partial<JobContext>;
  readonly cancelAfterBytes?: number;
}

interface RelayedJob {
  readonly cancelAfterBytes: number;
  readonly settle: (answer: RelayedAnswer) => void;
  accepted: boolean;
  bytes: Buffer[];
  total: number;
}

interface OpenJob {
  readonly responses: ResponseOpener;
  readonly context: JobContext;
  readonly options: SubmitOptions;
  readonly settle: (answer: Answer) => void;
  accepted: boolean;
  bytes: Buffer[];
  total: number;
  frames: number;
}

export class FakeProviderSession {
  /** Received messages that `next` has not returned. */
  readonly messages: ProviderMessage[] = [];
  readonly #jobs = new Map<JobId, OpenJob>();
  readonly #relayed = new Map<JobId, RelayedJob>();
  readonly #waiting: { readonly type: string; readonly resolve: (message: ProviderMessage) => void }[] = [];
  register: Register | null = null;
  attestation: Attestation | null = null;
  key: KeyStatement | null = null;
  publicKey: Uint8Array = new Uint8Array(0);
  closed = false;

  constructor(
    private readonly socket: WebSocket,
    private readonly sessionId: string,
    private readonly nonce: string,
  ) {
    socket.on('message', (data, isBinary) => {
      if (isBinary) this.#frame(data as Buffer);
      else this.#message(data.toString());
    });
    socket.on('close', () => {
      this.closed = true;
    });
  }

  send(message: CoordinatorMessage | { type: string }): void {
    this.socket.send(JSON.stringify(message));
  }

  sendRaw(data: string | Uint8Array): void {
    this.socket.send(data);
  }

  close(): void {
    this.socket.close();
  }

  /** While paused, bytes queue on the provider's side. */
  pauseReading(paused: boolean): void {
    if (paused) this.socket.pause();
    else this.socket.resume();
  }

  /** Next unread message of this type. */
  async next<Type extends ProviderMessage['type']>(type: Type, timeoutMs = 100_000): Promise<ProviderMessage & { type: Type }> {
    const known = this.messages.findIndex((message) => message.type === type);
    if (known >= 0) return this.messages.splice(known, 1)[0] as ProviderMessage & { type: Type };
    let timer: NodeJS.Timeout | undefined;
    return await Promise.race([
      new Promise<ProviderMessage & { type: Type }>((resolve) =>
        this.#waiting.push({ type, resolve: (message) => resolve(message as ProviderMessage & { type: Type }) }),
      ),
      new Promise<never>((_, reject) => {
        timer = setTimeout(() => reject(new Error(`no ${type} message came`)), timeoutMs);
      }),
    ]).finally(() => clearTimeout(timer));
  }

  /** Registers the provider after verifying its messages. */
  async admit(): Promise<Register> {
    const register = await this.next('register');
    this.register = register;
    const claimed = JSON.parse(Buffer.from(register.attestation.payload, 'base64').toString()) as Attestation;
    this.publicKey = fromBase64(claimed.se_public_key);
    this.attestation = openAttestation(register.attestation, this.publicKey, verifyP256).value;
    const challenge = openChallengeAnswer(register.challenge, this.publicKey, verifyP256).value;
    if (challenge.nonce !== this.nonce || challenge.session_id !== this.sessionId) throw new Error('the challenge was not answered');
    this.#useKey(register.key, sha256Hex(fromBase64(register.attestation.payload)));
    this.send({ type: 'registered', provider_id: providerIdOf(this.publicKey), trust_level: 'self_signed' });
    return register;
  }

  /** Seals a chat request to the provider. Resolves when the provider has completed or failed the job. */
  submit(request: Record<string, unknown>, options: SubmitOptions = {}): Promise<Answer> {
    return this.submitBytes(Buffer.from(JSON.stringify({ model: this.register?.models[0]?.id, ...request })), request, options);
  }

  submitBytes(body: Uint8Array, request: Record<string, unknown>, options: SubmitOptions = {}): Promise<Answer> {
    const { key, register } = this;
    if (key === null || register === null) throw new Error('not registered');
    const maxTokens = typeof request.max_tokens === 'number' ? request.max_tokens : null;
    const context: JobContext = {
      v: 1,
      job_id: randomUUID() as JobId,
      provider_id: providerIdOf(this.publicKey),
      key_id: key.key_id,
      endpoint: '/v1/chat/completions',
      model: register.models[0]?.id ?? '',
      stream: request.stream === true,
      max_tokens: maxTokens ?? 8192,
      overrides: maxTokens === null ? { max_tokens: 8192 } : {},
      response_id: `chatcmpl-${randomBytes(8).toString('hex')}`,
      created: Math.floor(Date.now() / 1000),
      request_sha256: sha256Hex(body),
      issued_at: Date.now(),
      expires_at: Date.now() + 60_000,
      ...options.context,
    };
    const sealed = sealRequest(context, encapsulate(fromBase64(key.x25519_public_key)), body);
    return new Promise((settle) => {
      this.#jobs.set(context.job_id, {
        responses: sealed.responseOpener,
        context,
        options,
        settle,
        accepted: false,
        bytes: [],
        total: 0,
        frames: 0,
      });
      const { credit = INITIAL_CREDIT_BYTES } = options;
      this.send({ type: 'job', context, enc: toBase64(sealed.enc), request_bytes: body.length, credit });
      for (const frame of (options.tamper ?? ((frames) => frames))([...sealed.frames])) this.sendRaw(frame);
    });
  }

  /** Relays a request that a client sealed. Resolves when the provider has completed or failed the job. */
  relay(sealed: SealedE2eRequest, options: RelayOptions = {}): Promise<RelayedAnswer> {
    const { recipient = 0, cancelAfterBytes = Number.POSITIVE_INFINITY } = options;
    const { endpoint, model, stream, max_tokens, recipients } = sealed.context;
    const context: JobContext = {
      v: 1,
      job_id: randomUUID() as JobId,
      provider_id: providerIdOf(this.publicKey),
      key_id: recipients[recipient]?.key_id ?? ('' as KeyId),
      ...{ endpoint, model, stream, max_tokens },
      overrides: {},
      response_id: `relayed-${randomBytes(8).toString('hex')}`,
      created: Math.floor(Date.now() / 1000),
      request_sha256: sealed.sealedRequestSha256,
      issued_at: Date.now(),
      expires_at: Date.now() + 60_000,
      ...options.context,
    };
    const { job_id: jobId } = context;
    return new Promise((settle) => {
      this.#relayed.set(jobId, { cancelAfterBytes, settle, accepted: false, bytes: [], total: 0 });
      const enc = toBase64(sealed.candidates[recipient]?.enc ?? new Uint8Array(32));
      const e2e = { v: 1, recipient } as const;
      this.send({ type: 'job', context, enc, request_bytes: sealed.bytes.length, credit: INITIAL_CREDIT_BYTES, e2e });
      const count = Math.ceil(sealed.bytes.length / REQUEST_CHUNK_BYTES);
      for (let seq = 0; seq < count; seq++) {
        const payload = sealed.bytes.subarray(seq * REQUEST_CHUNK_BYTES, (seq + 1) * REQUEST_CHUNK_BYTES);
        this.sendRaw(encodeFrame({ type: 'request', final: seq === count - 1, seq, jobId, payload }));
      }
    });
  }

  /** Bytes of a running job's answer so far; 0 for other jobs. */
  received(jobId: JobId): number {
    return this.#jobs.get(jobId)?.total ?? 0;
  }

  openJobs(): JobId[] {
    return [...this.#jobs.keys()];
  }

  #useKey(statement: Register['key'], attestationSha256: string | null): void {
    const key = openKeyStatement(statement, this.publicKey, verifyP256).value;
    if (attestationSha256 !== null && key.attestation_sha256 !== attestationSha256)
      throw new Error('the key is bound to another attestation');
    this.key = key;
  }

  #frame(data: Buffer): void {
    const frame = decodeFrame(data);
    const relayed = this.#relayed.get(frame.jobId);
    if (relayed !== undefined) {
      this.#relayedFrame(relayed, frame);
      return;
    }
    const job = this.#jobs.get(frame.jobId);
    if (job === undefined) return;
    const bytes = Buffer.from(job.responses.open(frame));
    job.bytes.push(bytes);
    job.total += bytes.length;
    if (job.total === bytes.length && bytes.length > 0) job.options.onFirstBytes?.();
    if (bytes.length > 0) {
      job.frames += 1;
      job.options.onBytes?.(bytes);
    }
    if (job.options.grant !== false && bytes.length > 0) this.send({ type: 'credit', job_id: frame.jobId, bytes: bytes.length });
    if (job.total >= (job.options.cancelAfterBytes ?? Number.POSITIVE_INFINITY)) this.send({ type: 'cancel', job_id: frame.jobId });
  }

  #relayedFrame(job: RelayedJob, { jobId, payload }: Frame): void {
    job.bytes.push(Buffer.from(payload));
    job.total += payload.length;
    if (payload.length > 0) this.send({ type: 'credit', job_id: jobId, bytes: payload.length });
    if (job.total >= job.cancelAfterBytes) this.send({ type: 'cancel', job_id: jobId });
  }

  /** Handles a message of a relayed job; false: another message. */
  #relayedMessage(message: ProviderMessage): boolean {
    if (message.type !== 'job_accepted' && message.type !== 'job_completed' && message.type !== 'job_failed') return false;
    const { job_id: jobId } = message;
    const job = this.#relayed.get(jobId);
    if (job === undefined) return false;
    if (message.type === 'job_accepted') {
      job.accepted = true;
      return true;
    }
    this.#relayed.delete(jobId);
    const { accepted } = job;
    const completed = message.type === 'job_completed' ? message : null;
    const failure = message.type === 'job_failed' ? message.failure : null;
    job.settle({ jobId, accepted, bytes: Buffer.concat(job.bytes), completed, failure });
    return true;
  }

  #message(text: string): void {
    const parsed = parseProviderMessage(text);
    if (parsed.kind !== 'message') throw new Error(`the provider sent ${parsed.kind}: ${text.slice(0, 200)}`);
    const { message } = parsed;
    const waiting = this.#waiting.findIndex(({ type }) => type === message.type);
    if (waiting >= 0) this.#waiting.splice(waiting, 1)[0]?.resolve(message);
    else this.messages.push(message);
    if (message.type === 'key_update') this.#useKey(message.key, null);
    if (this.#relayedMessage(message)) return;
    if (message.type === 'job_accepted') {
      const job = this.#jobs.get(message.job_id);
      if (job !== undefined) job.accepted = true;
    } else if (message.type === 'job_failed') {
      this.#settle(message.job_id, message.failure, null);
    } else if (message.type === 'job_completed') {
      const job = this.#jobs.get(message.job_id);
      if (job === undefined) return;
      const sha256 = sha256Hex(Buffer.concat(job.bytes));
      const valid = verifyResponseSignature(this.publicKey, message.response_sha256, fromBase64(message.signature));
      if (!job.responses.finished || sha256 !== message.response_sha256 || !valid) throw new Error('the answer does not verify');
      const receipt = openReceipt(message.receipt, this.publicKey, verifyP256).value;
      if (receipt.response_sha256 !== sha256) throw new Error('the receipt is for another answer');
      this.#settle(message.job_id, null, receipt);
    }
  }

  #settle(jobId: JobId, failure: JobFailure | null, receipt: Receipt | null): void {
    const job = this.#jobs.get(jobId);
    if (job === undefined) return;
    this.#jobs.delete(jobId);
    const { accepted, frames } = job;
    job.settle({ jobId, accepted, body: Buffer.concat(job.bytes).toString('utf8'), frames, failure, receipt });
  }
}

export class FakeCoordinator {
  readonly #sessions: FakeProviderSession[] = [];
  readonly #waiting: ((session: FakeProviderSession) => void)[] = [];

  private constructor(
    private readonly server: WebSocketServer,
    { serverTime, version = 1, receipts }: { serverTime?: number; version?: number; receipts?: readonly number[] },
  ) {
    server.on('connection', (socket) => {
      socket.once('message', () => {
        if (this.isFrozen) return;
        const nonce = randomBytes(32).toString('base64');
        const sessionId = randomUUID();
        const session = new FakeProviderSession(socket, sessionId, nonce);
        session.send({
          type: 'welcome',
          version,
          session_id: sessionId,
          nonce,
          server_time: serverTime ?? Date.now(),
          ...(receipts === undefined ? {} : { receipts: [...receipts] }),
          ...(this.heartbeatMs === null ? {} : { heartbeat_ms: this.heartbeatMs }),
        });
        const waiting = this.#waiting.shift();
        if (waiting === undefined) this.#sessions.push(session);
        else waiting(session);
      });
    });
  }

  /** `serverTime`: replaces the real time. `version`: protocol version. `receipts`: accepted receipt versions. */
  static async listen({
    port = 0,
    ...talk
  }: {
    port?: number;
    serverTime?: number;
    version?: number;
    receipts?: readonly number[];
  } = {}): Promise<FakeCoordinator> {
    const server = new WebSocketServer({ host: '127.0.0.1', port, path: '/provider/v1/socket' });
    await once(server, 'listening');
    return new FakeCoordinator(server, talk);
  }

  /** Whether new connections get no answer, as from a frozen process. */
  isFrozen = false;

  /** `heartbeat_ms` of the next sessions; null: as a coordinator without peers. */
  heartbeatMs: number | null = null;

  get url(): string {
    return addressOf(this.server);
  }

  get socketUrl(): string {
    return `${this.url.replace('http', 'ws')}/provider/v1/socket`;
  }

  /** Session of the next provider that sent `hello`. */
  session(): Promise<FakeProviderSession> {
    const known = this.#sessions.shift();
    return known === undefined ? new Promise((resolve) => this.#waiting.push(resolve)) : Promise.resolve(known);
  }

  async close(): Promise<void> {
    for (const socket of this.server.clients) socket.terminate();
    await new Promise((resolve) => this.server.close(resolve));
  }
}
