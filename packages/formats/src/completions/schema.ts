/** Schema of the members of a legacy completion request that are read. `members.ts` handles all other members. */
import Type, { type Static } from 'typebox';
import { ResponseFormatSchema, StreamOptionsSchema } from '../chat-completions/schema.js';
import { choices } from '../choices.js';
import { CONSTRAINTS } from '../constraints.js';
import { flag, model, nullable, provider_serial, stop, text, tokens } from '../fields.js';
import { ROUTING_FIELDS } from '../routing.js';
import { COMPLETION_SAMPLING } from '../sampling.js';

export const CompletionRequestSchema = Type.Object(
  {
    model,
    /** Accepts any array, so that the parser can refuse several prompts or tokens with a reason. */
    prompt: Type.Union([Type.String(), Type.Array(Type.Unknown(), { minItems: 1 })], {
      description: 'a string, or an array of one string',
    }),
    stream: flag,
    stream_options: nullable(StreamOptionsSchema, 'an object such as {"include_usage": true}'),
    max_tokens: tokens,
    ...COMPLETION_SAMPLING,
    stop,
    logprobs: nullable(Type.Integer({ minimum: 0, maximum: 5 }), 'an integer from 0 to 5'),
    /** Extension of OpenAI's API: structured output, as in other servers. */
    response_format: nullable(ResponseFormatSchema, 'an object with a type'),
    ...CONSTRAINTS,
    provider_serial,
    ...ROUTING_FIELDS,
    n: choices,
    best_of: nullable(Type.Integer({ minimum: 0, maximum: 20 }), 'an integer from 0 to 20'),
    echo: flag,
    suffix: text,
  },
  { description: 'a JSON object' },
);
export type CompletionRequest = Static<typeof CompletionRequestSchema>;
