/** Schema and renderer of the response to an image generation request: a JSON body with URLs or image data. */
import type { Usage } from '@inference/protocol';
import Type, { type Static } from 'typebox';
import { answerWithoutEvents, type ResponseMetadata } from '../format.js';
import type { ImageRequest } from '../request.js';

interface ImagesOutput {
  /** One entry per image, in order: a URL or padded base64. */
  readonly images: readonly ({ readonly url: string } | { readonly base64: string })[];
  readonly format: ImageRequest['format'];
  /** Size of all images, `<width>x<height>`. */
  readonly size: string;
  readonly usage: Usage;
}

const tokens = Type.Integer({ minimum: 0 });
const closed = { additionalProperties: false } as const;

/** Schema of the response body. Rejects unknown members, so that a provider cannot add text for the client. */
export const ImagesAnswerSchema = Type.Object(
  {
    created: Type.Integer({ description: 'Seconds since 1970.' }),
    data: Type.Array(
      Type.Union([
        Type.Object({ url: Type.String({ description: 'URL of the image, valid for a limited time.' }) }, closed),
        Type.Object({ b64_json: Type.String({ description: 'The image in base64.' }) }, closed),
      ]),
      { minItems: 1 },
    ),
    output_format: Type.Enum(['png', 'jpeg', 'webp']),
    size: Type.String({ description: '<width>x<height> in pixels.' }),
    usage: Type.Object(
      {
        input_tokens: tokens,
        input_tokens_details: Type.Object({ image_tokens: tokens, text_tokens: tokens }, closed),
        output_tokens: tokens,
        total_tokens: tokens,
      },
      closed,
    ),
  },
  closed,
);
export type ImagesAnswer = Static<typeof ImagesAnswerSchema>;

export function imagesBody({ created }: Pick<ResponseMetadata, 'created'>, { images, format, size, usage }: ImagesOutput): string {
  const answer: ImagesAnswer = {
    created,
    data: images.map((image) => ('url' in image ? { url: image.url } : { b64_json: image.base64 })),
    output_format: format,
    size,
    usage: {
      input_tokens: usage.prompt_tokens,
      input_tokens_details: { image_tokens: 0, text_tokens: usage.prompt_tokens },
      output_tokens: usage.completion_tokens,
      total_tokens: usage.total_tokens,
    },
  };
  return JSON.stringify(answer);
}

/** Content types by output format, for images that the coordinator serves by URL. */
export const IMAGE_CONTENT_TYPES = { png: 'image/png', jpeg: 'image/jpeg', webp: 'image/webp' } as const satisfies Record<
  ImageRequest['format'],
  string
>;

export const imagesAnswer = answerWithoutEvents('img-');
