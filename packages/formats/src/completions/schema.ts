/** The legacy completion request as it may arrive. What becomes of other members, members.ts says. */
import Type, { type Static } from 'typebox';
import { ResponseFormatSchema, StreamOptionsSchema } from '../chat-completions/schema.js';
import { CONSTRAINTS } from '../constraints.js';
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
    stream_options: nullable(StreamOptionsSchema, 'an object such as {"include_usage": true}'),
    max_tokens: tokens,
    ...COMPLETION_SAMPLING,
    stop,
    logprobs: nullable(Type.Integer({ minimum: 0, maximum: 5 }), 'an integer from 0 to 5'),
    /** Not in the format of the real API: forms of the answer as other servers take them here. */
    response_format: nullable(ResponseFormatSchema, 'an object with a type'),
    ...CONSTRAINTS,
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
