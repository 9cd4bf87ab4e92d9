/** From the bytes of an image request to the internal job. */

import { refuse } from '../errors/refusal.js';
import type { ImageFacts, ParsedImages, ParseOptions } from '../format.js';
import { readJsonBody } from '../json/json-body.js';
import { bodyReader } from '../members/body-reader.js';
import type { ImageRequest, ImageSize } from '../request.js';
import { imagesAnswer } from './answer.js';
import { IMAGES_MEMBERS } from './members.js';
import { type ImagesRequest, ImagesRequestSchema } from './schema.js';

const ENDPOINT = '/v1/images/generations';

const read = bodyReader(ImagesRequestSchema, IMAGES_MEMBERS);

/** Throws RequestError. */
export function parseImages(bytes: Uint8Array, options?: ParseOptions): ParsedImages {
  const { body, ignored } = read(readJsonBody(bytes), options);
  if (body.stream === true) refuse('stream', 'stream is not supported: images come whole.');
  const model = body.model ?? null;
  const image: ImageFacts = {
    count: body.n ?? 1,
    size: (body.size ?? null) as ImageSize,
    format: body.output_format ?? 'png',
    delivery: body.response_format ?? 'url',
  };
  return {
    request: {
      task: 'image',
      model,
      prompt: body.prompt,
      ...image,
      seed: body.seed ?? null,
      quality: qualityOf(body.quality),
      compression: body.output_compression ?? null,
    },
    // No token is generated; 1 is the minimum of a job context.
    facts: { endpoint: ENDPOINT, model, stream: false, maxTokens: 1, providerSerial: body.provider_serial ?? null, image },
    answer: imagesAnswer,
    ignored,
  };
}

/** Clients of different generations name the same thing differently. */
function qualityOf(given: ImagesRequest['quality']): ImageRequest['quality'] {
  switch (given) {
    case undefined:
    case null:
    case 'auto':
      return null;
    case 'standard':
      return 'medium';
    case 'hd':
    case 'xhigh':
    case 'max':
      return 'high';
    default:
      return given;
  }
}
