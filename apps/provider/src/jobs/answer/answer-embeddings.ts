/** `answerEmbeddings` computes the vectors of an embedding request and writes the response body, never as a stream. */
import { embeddingsBody, type ParsedEmbeddings, type ResponseMetadata } from '@inference/formats';
import { GenerationError } from '../../engine/generation.js';
import { fieldNames } from '../field-names.js';
import { JobError } from '../job-error.js';
import type { ModelLease } from '../model-lease.js';
import type { AnswerSummary } from './answer-text.js';
import { requireDeliverable } from './deliverable.js';
import { failureOf } from './engine-failure.js';
import { signedPrompt, usageOf } from './signed-usage.js';

interface EmbeddingsOptions {
  readonly parsed: ParsedEmbeddings;
  readonly responseMetadata: ResponseMetadata;
  readonly model: Pick<ModelLease, 'embedding' | 'embed'>;
  readonly requestBytes: number;
  /** Resolves when the reader has room for more. */
  readonly write: (text: string) => Promise<void>;
  /** Aborted to stop the job, with the error as the reason. */
  readonly signal: AbortSignal;
}

/** Returns what the receipt needs. Throws {@link JobError}, or the signal's reason once aborted. */
export async function answerEmbeddings({
  parsed,
  responseMetadata,
  model,
  requestBytes,
  write,
  signal,
}: EmbeddingsOptions): Promise<AnswerSummary> {
  signal.throwIfAborted();
  const { request } = parsed;
  if (model.embedding === null) throw new JobError('unsupported', { param: 'model' });
  const { dimensions, truncatable } = model.embedding;
  if (request.dimensions !== null && request.dimensions !== dimensions && (!truncatable || request.dimensions > dimensions)) {
    throw new JobError('unsupported', { param: 'dimensions' });
  }
  const embedding = model.embed({ inputs: request.inputs, dimensions: request.dimensions });
  const cancel = (): void => embedding.cancel();
  signal.addEventListener('abort', cancel, { once: true });
  try {
    const { vectors, promptTokens } = await embedding.result();
    signal.throwIfAborted();
    const usage = usageOf(signedPrompt({ promptTokens }, requestBytes), 0);
    const body = embeddingsBody(responseMetadata, { vectors, encoding: request.encoding, usage });
    requireDeliverable(body, 'input');
    await write(body);
    return { usage, hiddenTokens: 0, finishReason: 'stop', computation: { usedTemplate: false, sampling: null }, decodeTps: null };
  } catch (error) {
    signal.throwIfAborted();
    throw error instanceof GenerationError ? failureOf(error, fieldNames(parsed)) : error;
  } finally {
    signal.removeEventListener('abort', cancel);
  }
}
