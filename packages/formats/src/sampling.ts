/** Sampling parameters under the names that all formats give them. */
import Type from 'typebox';
import { nullable } from './fields.js';
import type { Sampling } from './request.js';

/** Temperature when the client names none (specification: 1.0). */
export const DEFAULT_TEMPERATURE = 1;

const PENALTY = Type.Number({ minimum: -2, maximum: 2 });

export const temperature = nullable(Type.Number({ minimum: 0, maximum: 2 }), 'a number from 0 to 2');
export const top_p = nullable(Type.Number({ minimum: 0, maximum: 1 }), 'a number from 0 to 1');
export const top_k = nullable(Type.Integer({ minimum: 0, maximum: 2_147_483_647 }), 'an integer of at least 0');
const seed = nullable(Type.Integer({ minimum: -(2 ** 63), maximum: 2 ** 63 }), 'an integer from -2^63 to 2^63');
const penalty = nullable(PENALTY, 'a number from -2 to 2');

/** The parameters of OpenAI's formats. */
export const OPEN_AI_SAMPLING = { temperature, top_p, seed, frequency_penalty: penalty, presence_penalty: penalty };

interface SamplingFields {
  readonly temperature?: number | null;
  readonly top_p?: number | null;
  readonly top_k?: number | null;
  readonly seed?: number | null;
  readonly frequency_penalty?: number | null;
  readonly presence_penalty?: number | null;
}

export function samplingOf(body: SamplingFields): Sampling {
  // A nucleus of mass 0 holds the most likely token alone. Engines read 0 in different ways, so it is said as greedy.
  const greedy = body.top_p === 0;
  return {
    temperature: greedy ? 0 : (body.temperature ?? DEFAULT_TEMPERATURE),
    topP: greedy ? null : (body.top_p ?? null),
    // 0 turns the limit off wherever it is known at all.
    topK: body.top_k === 0 ? null : (body.top_k ?? null),
    seed: body.seed ?? null,
    frequencyPenalty: body.frequency_penalty ?? null,
    presencePenalty: body.presence_penalty ?? null,
  };
}
