/** Schemas of sampling parameters, and their conversion to the internal form. */
import Type, { type Static, type TObject } from 'typebox';
import { isPresent, rejectInvalid } from './errors/reject.js';
import { nullable } from './fields.js';
import type { Sampling } from './request.js';

/** Temperature if the request has none, as in OpenAI's API. */
export const DEFAULT_TEMPERATURE = 1;

const PENALTY = Type.Number({ minimum: -2, maximum: 2 });

export const temperature = nullable(Type.Number({ minimum: 0, maximum: 2 }), 'a number from 0 to 2');
export const top_p = nullable(Type.Number({ minimum: 0, maximum: 1 }), 'a number from 0 to 1');
/** The maximum in the Messages format is 1. */
export const temperature_to_1 = nullable(Type.Number({ minimum: 0, maximum: 1 }), 'a number from 0 to 1');
export const top_k = nullable(Type.Integer({ minimum: 0, maximum: 2_147_483_647 }), 'an integer of at least 0');
/** Extension of OpenAI's formats that many clients send. -1 means no limit. */
const loose_top_k = nullable(Type.Integer({ minimum: -1, maximum: 2_147_483_647 }), 'an integer of at least -1');
const seed = nullable(Type.Integer({ minimum: -(2 ** 63), maximum: 2 ** 63 }), 'an integer from -2^63 to 2^63');
/** Extension of OpenAI's formats. */
const min_p = nullable(Type.Number({ minimum: 0, maximum: 1 }), 'a number from 0 to 1');
const MAX_BIASES = 1024;
/** Keys are indices in the model's vocabulary. The engine refuses unknown indices. */
const logit_bias = nullable(
  Type.Record(
    Type.String({ pattern: '^(0|[1-9][0-9]{0,8})$' }),
    Type.Number({ minimum: -100, maximum: 100, description: 'a number from -100 to 100' }),
    { maxProperties: MAX_BIASES, additionalProperties: false },
  ),
  `an object of up to ${MAX_BIASES} token numbers, each with a number from -100 to 100`,
);
const penalty = nullable(PENALTY, 'a number from -2 to 2');
/** Extension of OpenAI's formats, named `repeat_penalty` in llama.cpp and Ollama. */
const repetition_penalty = nullable(Type.Number({ exclusiveMinimum: 0, maximum: 10 }), 'a number above 0 and up to 10');

/** Parameters of OpenAI's formats, including extensions. */
export const OPEN_AI_SAMPLING = {
  temperature,
  top_p,
  top_k: loose_top_k,
  min_p,
  seed,
  frequency_penalty: penalty,
  presence_penalty: penalty,
  repetition_penalty,
  repeat_penalty: repetition_penalty,
};
/** Parameters of chat and legacy completions. */
export const COMPLETION_SAMPLING = { ...OPEN_AI_SAMPLING, logit_bias };

/** Converts the sampling members of a request. Throws RequestError on two different repetition penalties. */
export function samplingOf(body: Static<TObject<typeof COMPLETION_SAMPLING>>): Sampling {
  // `top_p` 0 should select only the most probable token. Engines interpret 0 differently, so greedy sampling replaces it.
  const greedy = body.top_p === 0;
  if (isPresent(body.repetition_penalty) && isPresent(body.repeat_penalty) && body.repetition_penalty !== body.repeat_penalty)
    rejectInvalid('repeat_penalty', 'repetition_penalty and repeat_penalty differ. Give only one of them.');
  const repetition = body.repetition_penalty ?? body.repeat_penalty ?? 1;
  return {
    temperature: greedy ? 0 : (body.temperature ?? DEFAULT_TEMPERATURE),
    topP: greedy ? null : (body.top_p ?? null),
    // 0 disables the limit.
    topK: (body.top_k ?? 0) <= 0 ? null : (body.top_k ?? null),
    minP: (body.min_p ?? 0) === 0 ? null : (body.min_p ?? null),
    logitBias: Object.entries(body.logit_bias ?? {}).map(([token, bias]) => [Number(token), bias]),
    seed: body.seed ?? null,
    frequencyPenalty: body.frequency_penalty ?? null,
    presencePenalty: body.presence_penalty ?? null,
    repetitionPenalty: repetition === 1 ? null : repetition,
  };
}
