/** The request parameter `n`: number of choices, which are independent outputs for one prompt. */
import Type from 'typebox';
import { nullable } from './fields.js';

/** Limited, because choices are generated one after another and occupy a slot meanwhile. */
export const MAX_CHOICES = 16;

/** Token limit per choice that the coordinator sets if the request has none. */
export const DEFAULT_MAX_TOKENS = 8192;

export const choices = nullable(Type.Integer({ minimum: 1, maximum: MAX_CHOICES }), `an integer from 1 to ${MAX_CHOICES}`);

/** Converts the limit per choice, `maxTokens`, to the limit of all choices together, for routing and reservation. */
export function choiceParams(count: number, maxTokens: number | null): { readonly maxTokens: number | null; readonly choices?: number } {
  return count === 1 ? { maxTokens } : { maxTokens: count * (maxTokens ?? DEFAULT_MAX_TOKENS), choices: count };
}
