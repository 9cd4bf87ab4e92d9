/** `leaseModel` leases a loaded model from the pool to a job, with the properties that answers and receipts need. */
import { sha256Hex } from '@inference/protocol/crypto';
import type { EmbeddingFacts } from '../models/embedding-facts.js';
import { type ImageFacts, sizeText } from '../models/image/image-facts.js';
import type { ThinkTags } from '../models/think-tags.js';
import type { ModelIdentity } from './answer/computed-by.js';
import { JobError } from './job-error.js';
import { type ModelPool, ModelUnavailable } from './serving/model-pool.js';
import type { ModelOperations, ServedModel } from './serving/served-model.js';

export interface ModelLease extends ModelOperations {
  readonly thinkTags: ThinkTags | null;
  /** Whether the model writes think sections, as in its offer; null if unknown. */
  readonly thinks: boolean | null;
  readonly identity: ModelIdentity;
  /** Maximum prompt tokens of one image. Null if the model takes no images. */
  readonly maxImageTokens: number | null;
  /** Null for other than embedding models. */
  readonly embedding: EmbeddingFacts | null;
  /** Of an image model: sizes that this machine supports, as `<width>x<height>`, and defaults. Null for other models. */
  readonly image: (Pick<ImageFacts, 'steps' | 'guidance'> & { readonly sizes: readonly string[] }) | null;
  /** Identifies weights and engine build to clients. */
  readonly systemFingerprint?: string;
  /** Ends the use of the model by the job. */
  release(): void;
}

/**
 * Resolves when the model is loaded. `engineBuild` becomes part of the fingerprint. Throws {@link JobError} `model_not_loaded`, or the
 * signal's reason.
 */
export async function leaseModel(models: ModelPool, id: string, engineBuild: string, signal: AbortSignal): Promise<ModelLease> {
  try {
    const { model, release } = await models.lease(id, signal);
    const { thinkTags, thinks, templateSha256, embedding, image } = model.serving.facts;
    return {
      thinkTags,
      thinks,
      identity: { engine: model.engineName, weightsSha256: model.serving.fileSha256(), templateSha256 },
      maxImageTokens: imageTokenBound(model),
      embedding,
      image: image === null ? null : { ...image, sizes: model.sizes.map(sizeText) },
      systemFingerprint: systemFingerprint(model, engineBuild),
      generate: (request) => model.generate(request),
      embed: (request) => model.embed(request),
      generateImages: (request) => model.generateImages(request),
      release,
    };
  } catch (error) {
    throw error instanceof ModelUnavailable ? new JobError('model_not_loaded') : error;
  }
}

/** The smaller of the offer's maximum and the projector header's, because the coordinator may know either. */
function imageTokenBound(model: ServedModel): number | null {
  const { vision } = model.serving.facts;
  if (vision === null) return null;
  return Math.min(vision.maxImageTokens, model.offer()?.vision?.max_image_tokens ?? vision.maxImageTokens);
}

/** Cached, because a fingerprint must not change when the file's hash becomes known. */
const fingerprintByModel = new WeakMap<ServedModel, { readonly fingerprint: string; readonly sha256: string | null }>();

/** `system_fingerprint` of answers: equal for the same weights on the same engine build, as in OpenAI's API. */
export function systemFingerprint(model: ServedModel, engineBuild: string): string {
  const { facts, fileSha256 } = model.serving;
  const sha256 = fileSha256();
  const cached = fingerprintByModel.get(model);
  // A different hash is that of a replaced file.
  const isReplaced = sha256 !== null && cached !== undefined && cached.sha256 !== null && cached.sha256 !== sha256;
  const weights = sha256 ?? `${facts.id} ${facts.quantization} ${facts.fileBytes}`;
  const fingerprint =
    cached === undefined || isReplaced
      ? `fp_${sha256Hex(new TextEncoder().encode(`${engineBuild} ${weights}`)).slice(0, 12)}`
      : cached.fingerprint;
  fingerprintByModel.set(model, { fingerprint, sha256: sha256 ?? cached?.sha256 ?? null });
  return fingerprint;
}
