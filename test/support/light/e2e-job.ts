/** `LightE2eJob`: end-to-end job of a light agent, opened, checked and sealed by the real agent's code, with a scripted response. */
import type { E2eReceiptDraft } from '@inference/enclave';
import { type ApiError, contentText, type ParsedRequest } from '@inference/formats';
import type { E2eReceipt, Frame, JobCompleted, JobContext, JobFailure, JobMessage, JsonValue } from '@inference/protocol';
import { keyIdOf, sha256Hex } from '@inference/protocol/crypto';
import { E2eChannel } from '../../../apps/provider/src/jobs/channel/e2e-channel.js';
import type { JobResponse, JobTerms } from '../../../apps/provider/src/jobs/channel/job-channel.js';
import { ReplaySet } from '../../../apps/provider/src/jobs/channel/replay-set.js';
import { JobError } from '../../../apps/provider/src/jobs/job-error.js';
import { requestFault } from '../../../apps/provider/src/jobs/request-fault.js';
import type { LightAgent } from './agent.js';
import { renderScript } from './render.js';
import { PROMPT_TOKENS, type Script, scriptIn } from './script.js';

/** Changes to the receipt before its signature, and to the message that ends the job. */
export interface E2eCompletionChange {
  readonly receipt?: (receipt: E2eReceipt) => E2eReceipt;
  readonly message?: (message: JobCompleted) => JobCompleted;
}

export class LightE2eJob {
  readonly agent: LightAgent;
  readonly context: JobContext;
  readonly startedAt = Date.now();
  readonly #channel: E2eChannel;
  readonly #abort = new AbortController();
  readonly #closing = new AbortController();
  #credit: number;
  #response: JobResponse | null = null;
  #terms: JobTerms | null = null;
  #fault: ApiError | null = null;
  #change: E2eCompletionChange = {};
  /** Words of the answer so far. */
  tokens = 0;

  constructor(agent: LightAgent, { e2e, ...message }: JobMessage & Required<Pick<JobMessage, 'e2e'>>) {
    this.agent = agent;
    this.context = message.context;
    this.#credit = message.credit;
    const { sealing } = agent.keys;
    this.#channel = new E2eChannel(
      { ...message, e2e },
      { id: keyIdOf(sealing.publicKey), pair: sealing, openedJobIds: new ReplaySet(), openedSealedRequests: agent.replays },
      {
        enclave: { signE2eResponse: async (responseSha256, draft) => this.#sign(responseSha256, draft) },
        sendFrame: (bytes, sent) => agent.sendBytes(bytes, sent),
      },
    );
  }

  /** Takes a request frame. True when the request is complete and opened, or failed. */
  open(frame: Frame): boolean {
    try {
      if (!this.#channel.accept(frame)) return false;
      this.#terms = this.#channel.terms();
    } catch (error) {
      this.#fault = requestFault(error);
      if (this.#fault === null) this.fail(error instanceof JobError ? error.failure : { code: 'internal' });
    }
    return true;
  }

  /** Opened and parsed request. Throws if the request is incomplete or invalid. */
  get terms(): JobTerms {
    if (this.#terms === null) throw new Error('the request is not complete, or at fault');
    return this.#terms;
  }

  get parsed(): ParsedRequest {
    const { parsed } = this.terms;
    if (parsed.request.task === 'embed' || parsed.request.task === 'image') throw new Error('light agents write text only');
    return parsed as ParsedRequest;
  }

  /** The client's script for the response. */
  get script(): Script {
    const { prompt } = this.parsed.request;
    return scriptIn(prompt.type === 'text' ? prompt.text : contentText(prompt.messages.at(-1)?.content ?? ''));
  }

  get response(): JobResponse {
    this.#response ??= this.#channel.openResponse(this.#credit, this.#abort.signal);
    return this.#response;
  }

  grant(bytes: number): void {
    if (this.#response === null) this.#credit += bytes;
    else this.#response.grant(bytes);
  }

  /** Ends the response after the words sent so far. */
  cancel(): void {
    this.#closing.abort();
  }

  /** Aborts the job after the connection has closed. */
  abandon(): void {
    this.#closing.abort();
    this.#abort.abort(new Error('the connection is over'));
  }

  dispose(): void {
    this.#response?.erase();
    this.#channel.erase();
  }

  accept(): void {
    this.agent.send({ type: 'job_accepted', job_id: this.context.job_id });
  }

  fail(failure: JobFailure): void {
    this.agent.send({ type: 'job_failed', job_id: this.context.job_id, failure });
  }

  /** Answers by the script, or refuses an invalid request. */
  async answer(change: E2eCompletionChange = {}): Promise<void> {
    if (this.#terms === null && this.#fault === null) return;
    this.#change = change;
    this.accept();
    if (this.#fault !== null) return this.refuse(this.#fault);
    const ended = await this.sendResponse();
    if (ended === 'nothing') return this.fail({ code: 'cancelled' });
    await this.complete(ended === 'cut' ? 'cancelled' : 'stop');
  }

  /** Answers with a signed, sealed refusal. */
  async refuse(error: ApiError): Promise<void> {
    // A refusal replaces the content of an open response.
    this.#response = this.response;
    this.#send(await this.#channel.refuse(error, this.startedAt));
  }

  /** Writes the response without its proof. */
  sendResponse(): Promise<'whole' | 'cut' | 'nothing'> {
    const { terms, parsed, context, script, response } = this;
    return renderScript({
      parsed,
      script,
      responseMetadata: { responseId: terms.responseId, created: context.created, model: context.model },
      stream: context.stream,
      write: (text) => response.write(text),
      hasWritten: () => response.written > 0,
      closing: this.#closing.signal,
      counter: this,
    });
  }

  /** Sends the proof and reports completion. */
  async complete(finishReason: 'stop' | 'cancelled' = 'stop'): Promise<void> {
    const completed = await this.response.finish({
      summary: {
        usage: { prompt_tokens: PROMPT_TOKENS, completion_tokens: this.tokens, total_tokens: PROMPT_TOKENS + this.tokens },
        hiddenTokens: 0,
        finishReason,
        computation: { usedTemplate: false, sampling: null },
        decodeTps: null,
      },
      identity: { engine: 'light', weightsSha256: null, templateSha256: null },
      startedAt: this.startedAt,
    });
    this.#send(completed);
  }

  #send(completed: JobCompleted): void {
    this.agent.send((this.#change.message ?? ((same) => same))(completed));
  }

  #sign(responseSha256: string, draft: E2eReceiptDraft) {
    const { enclave } = this.agent.keys;
    const receipt: E2eReceipt = { ...draft, provider_id: this.agent.providerId, se_key_sha256: sha256Hex(enclave.publicKey) };
    const signed = (this.#change.receipt ?? ((same) => same))(receipt);
    return {
      signature: enclave.signResponse(responseSha256),
      sealedSignature: enclave.signResponse(signed.sealed_response_sha256),
      receipt: enclave.statement('e2e-receipt', signed as JsonValue),
    };
  }
}
