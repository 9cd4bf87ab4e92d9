/** Parses an image generation request into the internal `ImageRequest` and the parameters for routing. */

import { rejectUnsupported } from '../errors/reject.js';
import type { ImageRequestParams, ParsedImages, ParseOptions } from '../format.js';
import { readJsonBody } from '../json/json-body.js';
import { bodyReader } from '../members/body-reader.js';
import type { ImageRequest, ImageSize } from '../request.js';
import { routingOf } from '../routing.js';
import { imagesAnswer } from './answer.js';
import { IMAGES_MEMBERS } from './members.js';
import { type ImagesRequest, ImagesRequestSchema } from './schema.js';

const ENDPOINT = '/v1/images/generations';

const read = bodyReader(ImagesRequestSchema, IMAGES_MEMBERS);

/** Parses the body of a request to `/v1/images/generations`. Throws RequestError. */
export function parseImages(bytes: Uint8Array, options?: ParseOptions): ParsedImages {
  const { body, ignored } = read(readJsonBody(bytes), options);
  if (body.stream === true) rejectUnsupported('stream', 'stream is not supported: the response contains only complete images.');
  const model = body.model ?? null;
  const image: ImageRequestParams = {
    count: body.n ?? 1,
    size: (body.size ?? null) as ImageSize,
    format: body.output_format ?? 'png',
    responseFormat: body.response_format ?? 'url',
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
    // Images generate no tokens, but a job context requires `max_tokens` of at least 1.
    params: {
      endpoint: ENDPOINT,
      model,
      stream: false,
      maxTokens: 1,
      providerSerial: body.provider_serial ?? null,
      image,
      // `model` only excludes itself from fallback models, which image requests do not have.
      ...routingOf({ ...body, model: model ?? '' }),
    },
    answer: imagesAnswer,
    ignored,
  };
}

/** Maps the quality names of all API versions to low, medium and high. Null: the model's default. */
function qualityOf(quality: ImagesRequest['quality']): ImageRequest['quality'] {
  switch (quality) {
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
      return quality;
  }
}
