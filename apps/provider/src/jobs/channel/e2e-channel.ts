/**
 * `E2eChannel` opens the request and seals the response of a job in end-to-end mode: the client is the peer.
 *
 * Errors that blame the request are sealed answers too. The coordinator sees only the codes of other failures.
 */
import type { E2eReceiptDraft, Enclave } from '@inference/enclave';
import { type ApiError, formatFor, imagesOfRequest, RequestError, textBytesOf, type UnknownMembers } from '@inference/formats';
import {
  type E2eAnswerHead,
  type E2eContext,
  type E2eLogHead,
  type Endpoint,
  type Frame,
  fromBase64Url,
  fromHex,
  type JobCompleted,
  type JobFailure,
  type OpenedE2eRequest,
  toHex,
  utf8,
} from '@inference/protocol';
import { nodeE2eCrypto, sha256 } from '@inference/protocol/crypto';
import type { FrameSink } from '../response-frames.js';
import type { SealingKey } from '../sealing-keys.js';
import { type E2eJobMessage, openOnce, SealedRequestCollector } from './e2e-request.js';
import { E2eResponse, type ReceiptEnd, type SealedContent } from './e2e-response.js';
import type { JobChannel, JobResponse, JobTerms } from './job-channel.js';
import { isImages, matchesContext, type ParsedBody } from './parsed-body.js';
import { signing } from './signing.js';

/** Domain separation of the HMAC in `cacheScopeOf`. */
const CACHE_LABEL = utf8('inference/e2e/v1 prefix cache\0');

export interface E2eChannelDependencies extends FrameSink {
  readonly enclave: Pick<Enclave, 'signE2eResponse'>;
  /** Checkpoint of the transparency log to send to a client that knows the log up to `head`; null for none. Default: none. */
  readonly checkpointFor?: (head: E2eLogHead) => string | null;
  /** Milliseconds since 1970. Default: the clock. */
  readonly now?: () => number;
}

export class E2eChannel implements JobChannel {
  readonly #collector: SealedRequestCollector;
  #opened: OpenedE2eRequest | null = null;
  /** Names of request members and tools that have no effect. */
  #ignored: readonly string[] = [];
  #response: E2eResponse | null = null;

  constructor(
    private readonly message: E2eJobMessage,
    private readonly key: SealingKey,
    private readonly deps: E2eChannelDependencies,
  ) {
    this.#collector = new SealedRequestCollector(message);
  }

  accept(frame: Frame): boolean {
    const bytes = this.#collector.accept(frame);
    if (bytes === null) return false;
    this.#opened = openOnce(this.message, bytes, this.key, (this.deps.now ?? Date.now)());
    return true;
  }

  /** Throws RequestError if the body is invalid, not supported in this mode, or contradicts the context of its sealed request. */
  terms(): JobTerms {
    const { context, body, head } = this.#request;
    const parsed: ParsedBody = formatFor(context.endpoint).parse(body, { unknownMembers: unknownMembersOf(context.endpoint) });
    this.#ignored = parsed.ignored;
    const { maxTokens } = parsed.params;
    if (!matchesContext(parsed.params, context)) throw contradiction('model, stream or endpoint');
    rejectRouting(parsed.params);
    if (!isImages(parsed) && parsed.params.choices !== undefined) {
      // The coordinator bounds the tokens of a sealed request by the model's context, which several choices may exceed.
      throw new RequestError('unsupported_parameter', 'n', 'n must be 1 in end-to-end mode.');
    }
    if (maxTokens !== null && maxTokens !== context.max_tokens) throw contradiction('max_tokens');
    if (isImages(parsed)) {
      if (parsed.params.image.count !== context.images) throw contradiction('images');
      if (context.image_size !== undefined && parsed.params.image.size !== context.image_size) throw contradiction('image_size');
      if (parsed.params.image.responseFormat === 'url') {
        const text = 'An end-to-end answer cannot be stored for download. Set response_format to b64_json.';
        throw new RequestError('unsupported_parameter', 'response_format', text);
      }
    }
    requireDeclaredImages(parsed, context);
    return {
      parsed,
      // In the form of a coordinator's response ids.
      responseId: parsed.answer.idPrefix + this.message.context.job_id.replaceAll('-', ''),
      requestBytes: context.body_bytes,
      overrides: {},
      cacheScope: head.cache_secret === undefined ? null : cacheScopeOf(head.cache_secret),
    };
  }

  openResponse(credit: number, signal: AbortSignal): JobResponse {
    const { context, commitments, answerSealer } = this.#request;
    this.#response = new E2eResponse({
      jobId: this.message.context.job_id,
      stream: context.stream,
      head: this.#head(),
      sealer: answerSealer(),
      commitImage: (index, sha256) => commitments.image(index, fromHex(sha256)),
      sign: (content, end) =>
        signing(this.deps.enclave.signE2eResponse(content.responseSha256, this.#receipt(content, end), signal), signal),
      sink: this.deps,
      credit,
      signal,
    });
    return this.#response;
  }

  readonly refuse = (error: ApiError, startedAt: number): Promise<JobCompleted> => {
    if (this.#response === null) throw new Error('a refusal needs an open response');
    return this.#response.refuse(formatFor(this.#request.context.endpoint).error(error), startedAt);
  };

  /** Reports only the code: `param`, `limit` and `actual` describe the plaintext. */
  reportedFailure({ code }: JobFailure): JobFailure {
    return { code };
  }

  erase(): void {
    this.#opened?.body.fill(0);
  }

  get #request(): OpenedE2eRequest {
    if (this.#opened === null) throw new Error('the request is not complete');
    return this.#opened;
  }

  #head(): E2eAnswerHead {
    const { stream, log } = this.#request.context;
    const checkpoint = log === undefined ? null : (this.deps.checkpointFor?.(log) ?? null);
    return {
      status: 200,
      content_type: stream ? 'text/event-stream; charset=utf-8' : 'application/json; charset=utf-8',
      ...ignoredHeader(this.#ignored),
      ...(checkpoint === null ? {} : { log_checkpoint: checkpoint }),
    };
  }

  #receipt({ responseSha256, sealedSha256, responseBytes }: SealedContent, end: ReceiptEnd): E2eReceiptDraft {
    const { context, contextSha256, sealedRequestSha256, body, commitments } = this.#request;
    return {
      v: 1,
      job_id: this.message.context.job_id,
      model: context.model,
      endpoint: context.endpoint,
      context_sha256: contextSha256,
      sealed_request_sha256: sealedRequestSha256,
      sealed_response_sha256: sealedSha256,
      request_commitment: commitments.request(sha256(body)),
      response_commitment: commitments.response(fromHex(responseSha256)),
      response_bytes: responseBytes,
      ...end,
      completed_at: Math.max(end.started_at, Date.now()),
    };
  }
}

/** As in plain mode. Clients of the Messages format send members of beta features, so only misspelt members are rejected there. */
function unknownMembersOf(endpoint: Endpoint): UnknownMembers {
  return endpoint.startsWith('/v1/messages') ? 'refuse_misspelt' : 'refuse';
}

/** Throws RequestError for members that choose providers or models: the client chooses them before it seals. */
function rejectRouting({ providerSerial, routing }: ParsedBody['params']): void {
  const param =
    providerSerial !== null ? 'provider_serial' : routing === undefined ? null : routing.given.length > 0 ? 'provider' : 'models';
  if (param === null) return;
  throw new RequestError('unsupported_parameter', param, `End-to-end mode does not take ${param}: the client chooses the providers.`);
}

/** Throws RequestError if the body's images differ from the declared ones, for which the coordinator reserved the client's balance. */
function requireDeclaredImages({ request }: ParsedBody, { body_bytes, input_images = 0, input_image_bytes = 0 }: E2eContext): void {
  if (request.task !== 'generate' && request.task !== 'count') return;
  if (imagesOfRequest(request).length !== input_images) throw contradiction('input_images');
  if (body_bytes - textBytesOf(request, body_bytes) !== input_image_bytes) throw contradiction('input_image_bytes');
}

function contradiction(member: string): RequestError {
  return new RequestError('invalid_request', null, `The sealed request's context and its body differ in ${member}.`);
}

/** Cache scope of 32 hex digits, as in plain mode, from a secret that the coordinator does not know. */
function cacheScopeOf(secret: string): string {
  return toHex(nodeE2eCrypto.hmacSha256(fromBase64Url(secret), CACHE_LABEL)).slice(0, 32);
}

/** Leaves room for `, ...` within the 1024 characters of a header in an answer's head. */
const MAX_IGNORED_HEADER_LENGTH = 1000;

/** Header `X-Inference-Ignored`: a list of request members and tools that had no effect, cut off if long. No header for an empty list. */
function ignoredHeader(ignored: readonly string[]): Pick<E2eAnswerHead, 'headers'> {
  if (ignored.length === 0) return {};
  let shown = '';
  for (const [index, name] of ignored.entries()) {
    const next = `${shown}${index === 0 ? '' : ', '}${name.replace(/[^\x20-\x7e]/g, '?').trim()}`;
    if (next.length > MAX_IGNORED_HEADER_LENGTH) return { headers: { 'x-inference-ignored': `${shown}, ...` } };
    shown = next;
  }
  return { headers: { 'x-inference-ignored': shown } };
}
