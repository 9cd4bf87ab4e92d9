/** The request parameter `n`: number of choices, which are independent outputs for one prompt. */
import Type from 'typebox';
import { nullable } from './fields.js';

/** Choices are generated one after another in one slot, so their number is limited. */
export const MAX_CHOICES = 16;

/** Token limit per choice that the coordinator sets if the request has none. */
export const DEFAULT_MAX_TOKENS = 8192;

export const choices = nullable(Type.Integer({ minimum: 1, maximum: MAX_CHOICES }), `an integer from 1 to ${MAX_CHOICES}`);

/** Parameters for routing and reservation: `maxTokens` per choice becomes the limit of all choices together. */
export function choiceParams(count: number, maxTokens: number | null): { readonly maxTokens: number | null; readonly choices?: number } {
  return count === 1 ? { maxTokens } : { maxTokens: count * (maxTokens ?? DEFAULT_MAX_TOKENS), choices: count };
}
