/** `CoordinatorChannel` opens the request and seals the response of a job in plain mode: the coordinator is the HPKE peer (RFC 9180). */
import type { Enclave, ReceiptDraft } from '@inference/enclave';
import { type FetchedImage, formatFor, type ImageUrlResolver, RequestError } from '@inference/formats';
import {
  bodyPartHeader,
  type Frame,
  fromBase64,
  imagePartHeader,
  type JobCompleted,
  type JobContext,
  type JobFailure,
  type JobMessage,
  toBase64,
  utf8,
} from '@inference/protocol';
import { RequestOpener, type ResponseHash, responseHash, SealingError, sha256Hex } from '@inference/protocol/crypto';
import { computedBy } from '../answer/computed-by.js';
import { JobError } from '../job-error.js';
import { type FrameSink, ResponseFrames } from '../response-frames.js';
import type { SealingKey } from '../sealing-keys.js';
import type { FinishedAnswer, JobChannel, JobResponse, JobTerms } from './job-channel.js';
import { matchesContext, type ParsedBody } from './parsed-body.js';
import { signing } from './signing.js';

export interface CoordinatorChannelDependencies extends FrameSink {
  readonly enclave: Pick<Enclave, 'signResponse'>;
  /** Newest receipt version that the coordinator accepts. Default: 1. */
  readonly receiptVersion?: 1 | 2;
}

export class CoordinatorChannel implements JobChannel {
  /** Null, because the coordinator renders errors from the reported failure. */
  readonly refuse = null;
  readonly #opener: RequestOpener;
  #body: Uint8Array | null = null;

  /** Throws {@link JobError} `unsealing_failed` if the message's encapsulated key is malformed. */
  constructor(
    private readonly message: JobMessage,
    key: SealingKey,
    private readonly deps: CoordinatorChannelDependencies,
  ) {
    try {
      this.#opener = new RequestOpener(message.context, fromBase64(message.enc), key.pair, message.request_bytes);
    } catch {
      throw new JobError('unsealing_failed');
    }
  }

  accept(frame: Frame): boolean {
    try {
      this.#body = this.#opener.accept(frame);
    } catch (error) {
      throw new JobError(error instanceof SealingError ? 'unsealing_failed' : 'internal');
    }
    return this.#body !== null;
  }

  terms(): JobTerms {
    const { context } = this.message;
    const { body, images } = this.#parts();
    if (sha256Hex(body) !== context.request_sha256) throw new JobError('bad_context');
    const parsed = parse(context, body, images);
    // The limit comes from the client's body or from the coordinator's override, never from both.
    const { max_tokens } = context.overrides;
    const { maxTokens } = parsed.params;
    const limit = maxTokens === null ? max_tokens : max_tokens === undefined ? maxTokens : null;
    if (!matchesContext(parsed.params, context) || limit !== context.max_tokens) throw new JobError('bad_context');
    const { response_id: responseId, overrides, cache_scope: cacheScope = null } = context;
    return { parsed, responseId, requestBytes: body.length, overrides, cacheScope };
  }

  /**
   * Splits the plaintext into the body and the images that the coordinator fetched for its URLs. Throws {@link JobError} `bad_context`
   * if the images are not the announced ones.
   */
  #parts(): { readonly body: Uint8Array; readonly images: readonly FetchedImage[] } {
    const plaintext = this.#body ?? new Uint8Array(0);
    const { fetched_images: announced = [], context } = this.message;
    const hashes = context.overrides.fetched_images ?? [];
    let end = plaintext.length;
    const images: FetchedImage[] = [];
    for (const [index, { media_type: mediaType, bytes }] of [...announced.entries()].reverse()) {
      const image = plaintext.subarray(Math.max(0, end - bytes), end);
      if (image.length !== bytes || sha256Hex(image) !== hashes[index]) throw new JobError('bad_context');
      images.unshift({ mediaType, base64: toBase64(image) });
      end -= bytes;
    }
    if (hashes.length !== images.length) throw new JobError('bad_context');
    return { body: plaintext.subarray(0, end), images };
  }

  openResponse(credit: number, signal: AbortSignal): JobResponse {
    const hash = responseHash();
    const frames = new ResponseFrames(this.#opener.responseSealer(), hash, this.deps, credit, signal);
    return new CoordinatorResponse(this.message.context, frames, hash, this.deps, signal);
  }

  reportedFailure(failure: JobFailure): JobFailure {
    return failure;
  }

  erase(): void {
    this.#body?.fill(0);
    this.#opener.erase();
  }
}

class CoordinatorResponse implements JobResponse {
  constructor(
    private readonly context: JobContext,
    private readonly frames: ResponseFrames,
    private readonly hash: ResponseHash,
    private readonly deps: CoordinatorChannelDependencies,
    private readonly signal: AbortSignal,
  ) {}

  get written(): number {
    return this.frames.written;
  }

  grant(bytes: number): void {
    this.frames.grant(bytes);
  }

  write(text: string): Promise<void> {
    return this.frames.write(text);
  }

  /** The response hash covers only the body; the receipt contains the images' hashes. */
  async writeImages(images: readonly Uint8Array[], body: string): Promise<void> {
    for (const [index, image] of images.entries()) {
      await this.frames.writeUnsigned(imagePartHeader(index, image.length));
      await this.frames.writeUnsigned(image);
    }
    await this.frames.writeUnsigned(bodyPartHeader(utf8(body).length));
    await this.frames.write(body);
  }

  async finish({ summary, identity, startedAt }: FinishedAnswer): Promise<JobCompleted> {
    await this.frames.finish();
    const { context, deps } = this;
    const responseSha256 = this.hash.digestHex();
    const version = deps.receiptVersion ?? 1;
    const draft: ReceiptDraft = {
      v: version,
      ...(version === 1 ? {} : computedBy(identity, summary.computation)),
      job_id: context.job_id,
      model: context.model,
      endpoint: context.endpoint,
      request_sha256: context.request_sha256,
      overrides: context.overrides,
      response_sha256: responseSha256,
      ...(summary.imageSha256 === undefined ? {} : { image_sha256: [...summary.imageSha256] }),
      ...(context.client_nonce === undefined ? {} : { client_nonce: context.client_nonce }),
      usage: summary.usage,
      hidden_tokens: summary.hiddenTokens,
      finish_reason: summary.finishReason,
      started_at: startedAt,
      completed_at: Math.max(startedAt, Date.now()),
    };
    const { signature, receipt } = await signing(deps.enclave.signResponse(draft, this.signal), this.signal);
    return { type: 'job_completed', job_id: context.job_id, response_sha256: responseSha256, signature, receipt };
  }

  erase(): void {
    this.frames.erase();
  }
}

function parse({ endpoint }: JobContext, body: Uint8Array, images: readonly FetchedImage[]): ParsedBody {
  try {
    return formatFor(endpoint).parse(body, images.length === 0 ? {} : { imageAt: imagesInOrder(images) });
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    throw new JobError('invalid_request', isReportable(error.param) ? { param: error.param } : {});
  }
}

/** Resolves the n-th distinct image URL of the body to the n-th fetched image. */
function imagesInOrder(images: readonly FetchedImage[]): ImageUrlResolver {
  const imageByUrl = new Map<string, FetchedImage>();
  return (url) => {
    const image = imageByUrl.get(url) ?? images[imageByUrl.size];
    if (image === undefined) throw new JobError('bad_context');
    imageByUrl.set(url, image);
    return image;
  };
}

/** Whether the wire format allows the name. Other values could contain the client's text. */
function isReportable(param: string | null): param is string {
  return param !== null && /^[A-Za-z0-9_.[\]]{1,64}$/.test(param);
}
