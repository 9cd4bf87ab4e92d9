/** Schema of the members of an image request that are read. `members.ts` handles all other members. */
import { MAX_IMAGES } from '@inference/protocol';
import Type, { type Static } from 'typebox';
import { flag, nullable, provider_serial } from '../fields.js';
import { ROUTING_FIELDS } from '../routing.js';

/** Maximum length of a prompt, in characters (code points). */
const MAX_PROMPT_LENGTH = 32_000;

export const ImagesRequestSchema = Type.Object(
  {
    prompt: Type.String({
      pattern: '\\S',
      maxLength: MAX_PROMPT_LENGTH,
      description: `a text of 1 to ${MAX_PROMPT_LENGTH} characters that is not blank`,
    }),
    model: nullable(Type.String({ minLength: 1, maxLength: 256 }), 'a string of 1 to 256 characters'),
    n: nullable(Type.Integer({ minimum: 1, maximum: MAX_IMAGES }), `an integer from 1 to ${MAX_IMAGES}`),
    size: nullable(
      Type.Union([Type.Literal('auto'), Type.String({ pattern: '^[1-9][0-9]{1,3}x[1-9][0-9]{1,3}$' })]),
      '"<width>x<height>" in pixels, such as "1024x1024", or "auto"',
    ),
    response_format: nullable(Type.Enum(['url', 'b64_json']), '"url" or "b64_json"'),
    output_format: nullable(Type.Enum(['png', 'jpeg', 'webp']), '"png", "jpeg" or "webp"'),
    output_compression: nullable(Type.Integer({ minimum: 0, maximum: 100 }), 'an integer from 0 to 100'),
    quality: nullable(
      Type.Enum(['low', 'medium', 'high', 'auto', 'standard', 'hd', 'xhigh', 'max']),
      '"low", "medium", "high", "auto", "standard", "hd", "xhigh" or "max"',
    ),
    seed: nullable(Type.Integer({ minimum: -(2 ** 63), maximum: 2 ** 63 }), 'an integer from -2^63 to 2^63'),
    provider_serial,
    provider: ROUTING_FIELDS.provider,

    // The parser refuses `true`.
    stream: flag,
  },
  { description: 'a JSON object' },
);
export type ImagesRequest = Static<typeof ImagesRequestSchema>;
