/** Schema of the members of an embeddings request that are read. `members.ts` handles all other members. */
import Type, { type Static } from 'typebox';
import { flag, model, nullable, provider_serial } from '../fields.js';
import { ROUTING_FIELDS } from '../routing.js';

const MAX_INPUTS = 2048;

const Token = Type.Integer({ minimum: 0, maximum: 2_147_483_647, description: 'the number of a token' });
const Tokens = Type.Array(Token, { minItems: 1 });
const Text = Type.String({ minLength: 1, description: 'a text that is not empty' });

export const EmbeddingsRequestSchema = Type.Object(
  {
    model,
    input: Type.Union(
      [Text, Type.Array(Text, { minItems: 1, maxItems: MAX_INPUTS }), Tokens, Type.Array(Tokens, { minItems: 1, maxItems: MAX_INPUTS })],
      { description: `a text that is not empty, an array of tokens, or an array of up to ${MAX_INPUTS} of one of these` },
    ),
    encoding_format: nullable(Type.Enum(['float', 'base64']), '"float" or "base64"'),
    dimensions: nullable(Type.Integer({ minimum: 1, maximum: 65_536 }), 'an integer from 1 to 65536'),
    provider_serial,
    ...ROUTING_FIELDS,

    // The parser refuses `true`.
    stream: flag,
  },
  { description: 'a JSON object' },
);
export type EmbeddingsRequest = Static<typeof EmbeddingsRequestSchema>;
