/** `LightJob`: job of a light agent, opened, rendered, sealed and signed by real code. Tests can omit or corrupt each step. */
import { contentText, formatFor, type ParsedRequest } from '@inference/formats';
import {
  type Frame,
  fromBase64,
  type JobCompleted,
  type JobContext,
  type JobFailure,
  type JobMessage,
  type JsonValue,
  type Receipt,
  utf8,
} from '@inference/protocol';
import { RequestOpener, type ResponseHash, type ResponseSealer, responseHash, sha256Hex } from '@inference/protocol/crypto';
import { ResponseFrames } from '../../../apps/provider/src/jobs/response-frames.js';
import type { LightAgent } from './agent.js';
import { renderScript } from './render.js';
import { PROMPT_TOKENS, type Script, scriptIn } from './script.js';

export interface CompletionChange {
  readonly receipt?: (receipt: Receipt) => Receipt;
  readonly message?: (message: JobCompleted) => JobCompleted;
}

/** Time from a cancel to the signed end of the partial output, in milliseconds. */
const CLOSE_TIMEOUT_MS = 5000;

export class LightJob {
  readonly agent: LightAgent;
  readonly context: JobContext;
  readonly startedAt = Date.now();
  readonly #opener: RequestOpener;
  readonly #hash: ResponseHash = responseHash();
  readonly #abort = new AbortController();
  readonly #closing = new AbortController();
  #closeTimer: NodeJS.Timeout | null = null;
  #credit: number;
  #parsed: ParsedRequest | null = null;
  #sealer: ResponseSealer | null = null;
  #frames: ResponseFrames | null = null;
  #requestSha256 = '';
  /** Words of the answer so far. */
  tokens = 0;

  constructor(agent: LightAgent, message: JobMessage) {
    this.agent = agent;
    this.context = message.context;
    this.#credit = message.credit;
    this.#opener = new RequestOpener(message.context, fromBase64(message.enc), agent.keys.sealing, message.request_bytes);
  }

  /** Takes a request frame. Returns true when the body is complete. */
  open(frame: Frame): boolean {
    const body = this.#opener.accept(frame);
    if (body === null) return false;
    this.#requestSha256 = sha256Hex(body);
    const { endpoint } = this.context;
    if (endpoint === '/v1/embeddings' || endpoint === '/v1/images/generations') throw new Error('light agents write text only');
    this.#parsed = formatFor(endpoint).parse(body);
    this.#sealer = this.#opener.responseSealer();
    return true;
  }

  /** Aborted on the coordinator's cancel or the agent's disconnect. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  get parsed(): ParsedRequest {
    if (this.#parsed === null) throw new Error('the request is not complete');
    return this.#parsed;
  }

  get sealer(): ResponseSealer {
    if (this.#sealer === null) throw new Error('the request is not complete');
    return this.#sealer;
  }

  /** The client's script for the response. */
  get script(): Script {
    const { prompt } = this.parsed.request;
    return scriptIn(prompt.type === 'text' ? prompt.text : contentText(prompt.messages.at(-1)?.content ?? ''));
  }

  get frames(): ResponseFrames {
    const sink = { sendFrame: (bytes: Uint8Array, sent: () => void) => this.agent.sendBytes(bytes, sent) };
    this.#frames ??= new ResponseFrames(this.sealer, this.#hash, sink, this.#credit, this.#abort.signal);
    return this.#frames;
  }

  grant(bytes: number): void {
    if (this.#frames === null) this.#credit += bytes;
    else this.#frames.grant(bytes);
  }

  /** Ends the response after the words sent so far. The wait for credit is bounded, as in the real agent. */
  cancel(): void {
    this.#closing.abort();
    this.#closeTimer ??= setTimeout(() => {
      this.fail({ code: 'cancelled' });
      this.#abort.abort(new Error('cancelled'));
    }, CLOSE_TIMEOUT_MS).unref();
  }

  /** Releases timers of the finished job. */
  dispose(): void {
    if (this.#closeTimer !== null) clearTimeout(this.#closeTimer);
  }

  /** Aborts the job after the connection has closed. */
  abandon(): void {
    this.#closing.abort();
    this.#abort.abort(new Error('the connection is over'));
  }

  accept(): void {
    this.agent.send({ type: 'job_accepted', job_id: this.context.job_id });
  }

  fail(failure: JobFailure): void {
    this.agent.send({ type: 'job_failed', job_id: this.context.job_id, failure });
  }

  /** Seals and sends bytes without regard to credit. */
  push(bytes: Uint8Array, final = false): void {
    this.#hash.update(bytes);
    this.agent.sendBytes(this.sealer.seal(bytes, final));
  }

  /** Accepts the job, sends and signs the response; on cancel, ends at the current position. */
  async answer(change: CompletionChange = {}): Promise<void> {
    this.accept();
    const ended = await this.sendResponse();
    if (ended === 'nothing') return this.fail({ code: 'cancelled' });
    await this.frames.finish();
    this.complete(ended === 'cut' ? { receipt: (receipt) => ({ ...receipt, finish_reason: 'cancelled' }) } : change);
  }

  /** Sends the response without its final frame. `cut`: cancelled after some output, `nothing`: before any. */
  sendResponse(): Promise<'whole' | 'cut' | 'nothing'> {
    const { context, parsed, script, frames } = this;
    return renderScript({
      parsed,
      script,
      responseMetadata: { responseId: context.response_id, created: context.created, model: context.model },
      stream: context.stream,
      write: (text) => frames.write(text),
      hasWritten: () => frames.written > 0,
      closing: this.#closing.signal,
      counter: this,
    });
  }

  /** Reports completion with signed statements, optionally altered. */
  complete(change: CompletionChange = {}): void {
    const responseSha256 = this.#hash.digestHex();
    const { enclave } = this.agent.keys;
    const receipt = (change.receipt ?? same)(this.#receipt(responseSha256));
    const message: JobCompleted = {
      type: 'job_completed',
      job_id: this.context.job_id,
      response_sha256: responseSha256,
      signature: enclave.signResponse(responseSha256),
      receipt: enclave.statement('receipt', receipt as JsonValue),
    };
    this.agent.send((change.message ?? same)(message));
  }

  get #usage(): Receipt['usage'] {
    return { prompt_tokens: PROMPT_TOKENS, completion_tokens: this.tokens, total_tokens: PROMPT_TOKENS + this.tokens };
  }

  #receipt(responseSha256: string): Receipt {
    const { context, agent } = this;
    return {
      v: 1,
      job_id: context.job_id,
      provider_id: agent.providerId,
      se_key_sha256: sha256Hex(agent.keys.enclave.publicKey),
      model: context.model,
      endpoint: context.endpoint,
      request_sha256: this.#requestSha256,
      overrides: context.overrides,
      response_sha256: responseSha256,
      ...(context.client_nonce === undefined ? {} : { client_nonce: context.client_nonce }),
      usage: this.#usage,
      hidden_tokens: 0,
      finish_reason: 'stop',
      started_at: this.startedAt,
      completed_at: Date.now(),
    };
  }
}

function same<Value>(value: Value): Value {
  return value;
}

export const bytesOf = utf8;
