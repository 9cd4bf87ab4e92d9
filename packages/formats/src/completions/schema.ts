/** The legacy completion request as it may arrive. Fields that are not listed are tolerated. */
import Type, { type Static } from 'typebox';
import { flag, model, nullable, provider_serial, stop, text, tokens } from '../fields.js';
import { COMPLETION_SAMPLING } from '../sampling.js';

export const CompletionRequestSchema = Type.Object(
  {
    model,
    /** Arrays of several prompts and of tokens are refused by the parser, which can say so. */
    prompt: Type.Union([Type.String(), Type.Array(Type.Unknown(), { minItems: 1 })], {
      description: 'a string, or an array of one string',
    }),
    stream: flag,
    stream_options: nullable(Type.Object({ include_usage: flag }), 'an object such as {"include_usage": true}'),
    max_tokens: tokens,
    ...COMPLETION_SAMPLING,
    stop,
    logprobs: nullable(Type.Integer({ minimum: 0, maximum: 5 }), 'an integer from 0 to 5'),
    provider_serial,

    // Known features that are not served: read only to be refused.
    n: nullable(Type.Integer(), 'an integer'),
    best_of: nullable(Type.Integer(), 'an integer'),
    echo: flag,
    suffix: text,
  },
  { description: 'a JSON object' },
);
export type CompletionRequest = Static<typeof CompletionRequestSchema>;
