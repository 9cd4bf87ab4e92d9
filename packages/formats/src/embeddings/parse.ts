/** Parses an embeddings request into the internal `EmbeddingRequest` and the parameters for routing. */

import { rejectUnsupported } from '../errors/reject.js';
import type { ParsedEmbeddings, ParseOptions } from '../format.js';
import { readJsonBody } from '../json/json-body.js';
import { bodyReader } from '../members/body-reader.js';
import { routingOf } from '../routing.js';
import { embeddingsAnswer } from './answer.js';
import { EMBEDDINGS_MEMBERS } from './members.js';
import { type EmbeddingsRequest, EmbeddingsRequestSchema } from './schema.js';

const ENDPOINT = '/v1/embeddings';

const read = bodyReader(EmbeddingsRequestSchema, EMBEDDINGS_MEMBERS);

/** Parses the body of a request to `/v1/embeddings`. Throws RequestError. */
export function parseEmbeddings(bytes: Uint8Array, options?: ParseOptions): ParsedEmbeddings {
  const { body, ignored } = read(readJsonBody(bytes), options);
  if (body.stream === true) rejectUnsupported('stream', 'stream is not supported: vectors come all at once.');
  const { model } = body;
  return {
    request: {
      task: 'embed',
      model,
      inputs: inputsOf(body.input),
      dimensions: body.dimensions ?? null,
      encoding: body.encoding_format ?? 'float',
    },
    // Embeddings generate no tokens, but a job context requires `max_tokens` of at least 1.
    params: { endpoint: ENDPOINT, model, stream: false, maxTokens: 1, providerSerial: body.provider_serial ?? null, ...routingOf(body) },
    answer: embeddingsAnswer,
    ignored,
  };
}

function inputsOf(input: EmbeddingsRequest['input']): (string | number[])[] {
  if (typeof input === 'string') return [input];
  // A flat array of numbers contains the tokens of one input.
  return isTokens(input) ? [input] : input;
}

function isTokens(input: readonly unknown[]): input is number[] {
  return typeof input[0] === 'number';
}
