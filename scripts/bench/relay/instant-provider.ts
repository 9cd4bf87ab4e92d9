/**
 * Program with one or more providers for benches. They speak the real protocol, but answer without a model, at once or at the pace that the
 * prompt asks for.
 *
 * Arguments: the coordinator's address, the framing, the number of providers, the model. The framing `agent` joins tokens into encrypted
 * frames as the agent does. With `frame-per-token`, unpaced plain-mode streams have a frame per token.
 */
import { decodeFrame, type Frame, type JobMessage, type JsonValue, parseCoordinatorMessage, type Register } from '@inference/protocol';
import { generateSealingKeyPair, RequestOpener, responseHash, sha256Hex } from '@inference/protocol/crypto';
import { WebSocket } from 'ws';
import { ReplaySet } from '../../../apps/provider/dist/jobs/channel/replay-set.js';
import { ResponseFrames } from '../../../apps/provider/dist/jobs/response-frames.js';
import { GatheredWrites } from '../../../apps/provider/dist/session/gathered-writes.js';
import { SoftwareEnclave } from '../../../test/support/software-enclave.js';
import { emitAtPace, type Pace, PLAIN_ANSWER, paceOf, STREAM_TOKENS, streamTokens, timedToken } from './answers.js';
import { InstantE2eJob } from './instant-e2e-job.js';

const [address, framing, providerCount, MODEL = 'bench'] = process.argv.slice(2);
const SLOTS = 1024;
const FRAME_PER_TOKEN = framing === 'frame-per-token';
const TOKENS = streamTokens();

class InstantProvider {
  readonly registered: Promise<void>;
  readonly #enclave = new SoftwareEnclave();
  readonly #sealingKey = generateSealingKeyPair();
  readonly #attestation = this.#enclave.attestation();
  /** Jobs whose request frames are still arriving. */
  readonly #incomplete = new Map<string, { job: JobMessage; opener: RequestOpener }>();
  readonly #incompleteE2e = new Map<string, InstantE2eJob>();
  readonly #replays = new ReplaySet();
  readonly #socket = new WebSocket(`${address}/provider/v1/socket`, { perMessageDeflate: false });
  #onRegistered: () => void = () => {};
  #writes: GatheredWrites | null = null;

  constructor() {
    this.registered = new Promise((resolve) => {
      this.#onRegistered = resolve;
    });
    this.#socket.once('upgrade', ({ socket }) => {
      this.#writes = new GatheredWrites(socket);
    });
    this.#socket.on('open', () => this.#sendMessage({ type: 'hello', versions: [1], agent: { name: 'bench', version: '0' } }));
    this.#socket.on('message', (data: Buffer, isBinary: boolean) =>
      isBinary ? this.#onFrame(data) : this.#onMessage(data.toString('utf8')),
    );
    this.#socket.on('close', (code) => process.exit(code === 1000 ? 0 : 1));
  }

  #sendMessage(message: object): void {
    this.#send(JSON.stringify(message));
  }

  /** Sends through the agent's write batching. */
  #send(data: string | Uint8Array, sent?: () => void): void {
    this.#writes?.begin();
    this.#socket.send(data, () => sent?.());
  }

  #onMessage(text: string): void {
    const parsed = parseCoordinatorMessage(text);
    if (parsed.kind !== 'message') return;
    const { message } = parsed;
    switch (message.type) {
      case 'welcome':
        this.#sendMessage(this.#registration(message.nonce, message.session_id));
        break;
      case 'registered':
        this.#onRegistered();
        break;
      case 'job': {
        const { context, enc, request_bytes, e2e } = message;
        if (e2e !== undefined) {
          this.#incompleteE2e.set(context.job_id, new InstantE2eJob({ ...message, e2e }, this.#e2eProvider()));
          break;
        }
        const opener = new RequestOpener(context, Buffer.from(enc, 'base64'), this.#sealingKey, request_bytes);
        this.#incomplete.set(context.job_id, { job: message, opener });
        break;
      }
      case 'challenge':
        this.#sendMessage({ type: 'challenge_answer', challenge: this.#enclave.challengeAnswer(message.nonce, this.#sessionId) });
        break;
      case 'rejected':
        throw new Error(message.message);
      default:
        break;
    }
  }

  #sessionId = '';

  #registration(nonce: string, sessionId: string): Register {
    this.#sessionId = sessionId;
    return {
      type: 'register',
      attestation: this.#attestation,
      challenge: this.#enclave.challengeAnswer(nonce, sessionId),
      key: this.#enclave.keyStatement(this.#sealingKey.publicKey, this.#attestation),
      hardware: { chip_family: 'Bench', cpu_cores: 1, gpu_cores: 0, bandwidth_gbs: 0 },
      models: [{ id: MODEL, model_type: 'text', display_name: 'Bench', quantization: '8bit', context_length: 131_072 }],
      slots: SLOTS,
      e2e_versions: [1],
    };
  }

  #e2eProvider() {
    const sendFrame = (bytes: Uint8Array, sent: () => void): void => this.#send(bytes, sent);
    return { enclave: this.#enclave, sealingKey: this.#sealingKey, replays: this.#replays, sendFrame };
  }

  #onFrame(data: Buffer): void {
    const frame = decodeFrame(data);
    const e2eJob = this.#incompleteE2e.get(frame.jobId);
    if (e2eJob !== undefined) {
      this.#onE2eFrame(e2eJob, frame);
      return;
    }
    const entry = this.#incomplete.get(frame.jobId);
    const body = entry?.opener.accept(frame) ?? null;
    if (entry === undefined || body === null) return;
    this.#incomplete.delete(frame.jobId);
    void this.#answer(entry.job, entry.opener, paceOf(Buffer.from(body.buffer, body.byteOffset, body.length)));
  }

  #onE2eFrame(job: InstantE2eJob, frame: Frame): void {
    if (!job.accept(frame)) return;
    this.#incompleteE2e.delete(frame.jobId);
    this.#sendMessage({ type: 'job_accepted', job_id: frame.jobId });
    void job.answer().then((completed) => this.#sendMessage(completed));
  }

  async #answer({ context, credit }: JobMessage, opener: RequestOpener, pace: Pace | null): Promise<void> {
    const startedAt = Date.now();
    this.#sendMessage({ type: 'job_accepted', job_id: context.job_id });
    const hash = responseHash();
    let completionTokens = context.stream ? STREAM_TOKENS : 8;
    if (FRAME_PER_TOKEN && pace === null && context.stream) {
      const sealer = opener.responseSealer();
      for (const [index, part] of TOKENS.entries()) {
        const bytes = Buffer.from(part);
        hash.update(bytes);
        this.#send(sealer.seal(bytes, index === TOKENS.length - 1));
      }
    } else {
      const sink = { sendFrame: (bytes: Uint8Array, sent: () => void) => this.#send(bytes, sent) };
      // A signal per job, as in the agent: listeners of all jobs would accumulate on a shared signal.
      const frames = new ResponseFrames(opener.responseSealer(), hash, sink, credit, new AbortController().signal);
      if (pace !== null) {
        completionTokens = pace.tokens;
        await new Promise<void>((resolve) => emitAtPace(pace, () => void frames.write(timedToken()), resolve));
      } else for (const part of context.stream ? TOKENS : [PLAIN_ANSWER]) await frames.write(part);
      await frames.finish();
    }
    const responseSha256 = hash.digestHex();
    const receipt = {
      v: 1,
      job_id: context.job_id,
      provider_id: context.provider_id,
      se_key_sha256: sha256Hex(this.#enclave.publicKey),
      model: context.model,
      endpoint: context.endpoint,
      request_sha256: context.request_sha256,
      overrides: context.overrides,
      response_sha256: responseSha256,
      client_nonce: context.client_nonce,
      usage: { prompt_tokens: 12, completion_tokens: completionTokens, total_tokens: 12 + completionTokens },
      hidden_tokens: 0,
      finish_reason: 'stop',
      started_at: startedAt,
      completed_at: Date.now(),
    };
    this.#sendMessage({
      type: 'job_completed',
      job_id: context.job_id,
      response_sha256: responseSha256,
      signature: this.#enclave.signResponse(responseSha256),
      receipt: this.#enclave.statement('receipt', receipt as JsonValue),
    });
  }
}

const providers = Array.from({ length: Number(providerCount ?? 1) }, () => new InstantProvider());
void Promise.all(providers.map((provider) => provider.registered)).then(() => process.send?.({ ready: true }));
process.on('disconnect', () => process.exit());
