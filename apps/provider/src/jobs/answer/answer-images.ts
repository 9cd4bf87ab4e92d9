/** `answerImages` generates the images of a request and writes the response body, which embeds them as base64 or links binary parts. */
import { imageSizeOf, imagesBody, type ParsedImages, pixelsOf, type ResponseMetadata } from '@inference/formats';
import type { Overrides } from '@inference/protocol';
import { sha256Hex } from '@inference/protocol/crypto';
import { ImageJobError } from '../../imaging/image-job.js';
import { MAX_IMAGES_OF_A_JOB } from '../../models/image/image-facts.js';
import { JobError } from '../job-error.js';
import type { ModelLease } from '../model-lease.js';
import type { AnswerSummary } from './answer-text.js';
import { signedPrompt, usageOf } from './signed-usage.js';

interface ImagesOptions {
  readonly parsed: ParsedImages;
  readonly responseMetadata: ResponseMetadata;
  readonly overrides: Overrides;
  readonly model: Pick<ModelLease, 'image' | 'generateImages'>;
  readonly requestBytes: number;
  /** Sends the images that the body links, if any, then the body. Resolves when the reader has room for more. */
  readonly writeImages: (images: readonly Uint8Array[], body: string) => Promise<void>;
  /** Called with plaintext that must be overwritten when the job is over. */
  readonly eraseLater: (bytes: Uint8Array) => void;
  /** Aborted to stop the job, with the error as the reason. */
  readonly signal: AbortSignal;
}

/** Denoising steps by quality, as a multiple of the model's default. */
const STEP_FACTORS = { low: 0.5, medium: 1, high: 1.5 } as const;

/** Returns what the receipt needs. Throws {@link JobError}, or the signal's reason once aborted. */
export async function answerImages(options: ImagesOptions): Promise<AnswerSummary> {
  const { parsed, responseMetadata, overrides, model, writeImages, eraseLater, signal } = options;
  signal.throwIfAborted();
  const { request } = parsed;
  if (model.image === null) throw new JobError('unsupported', { param: 'model' });
  const urls = overrides.image_urls ?? null;
  if ((urls?.length ?? null) !== (request.responseFormat === 'url' ? request.count : null)) throw new JobError('bad_context');
  if (request.count > MAX_IMAGES_OF_A_JOB) throw new JobError('unsupported', { param: 'n' });
  const size = imageSizeOf(request.size, model.image.sizes);
  if (size === null) throw new JobError('unsupported', { param: 'size' });
  const imageJob = model.generateImages({
    prompt: request.prompt,
    size: pixelsOf(size),
    count: request.count,
    seed: request.seed,
    steps: Math.max(1, Math.round(STEP_FACTORS[request.quality ?? 'medium'] * model.image.steps)),
    guidance: model.image.guidance,
    encoding: request.format,
    quality: request.compression,
  });
  const cancel = (): void => imageJob.cancel();
  signal.addEventListener('abort', cancel, { once: true });
  try {
    const { images, promptTokens } = await imageJob.result();
    for (const image of images) eraseLater(image);
    signal.throwIfAborted();
    if (images.length !== request.count) throw new JobError('engine_failed');
    const usage = { ...usageOf(signedPrompt({ promptTokens }, options.requestBytes), 0), images: images.length };
    const body = imagesBody(responseMetadata, {
      images: images.map((image, index) => {
        const url = urls?.[index];
        return url === undefined ? { base64: Buffer.from(image.buffer, image.byteOffset, image.byteLength).toString('base64') } : { url };
      }),
      format: request.format,
      size,
      usage,
    });
    await writeImages(urls === null ? [] : images, body);
    const computation = { usedTemplate: false, sampling: null };
    return { usage, hiddenTokens: 0, finishReason: 'stop', computation, decodeTps: null, imageSha256: images.map(sha256Hex) };
  } catch (error) {
    signal.throwIfAborted();
    throw error instanceof ImageJobError ? new JobError(error.end.kind) : error;
  } finally {
    signal.removeEventListener('abort', cancel);
    imageJob.cancel();
  }
}
