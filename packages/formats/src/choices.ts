/** `n`: several independent outputs for one prompt. */
import Type from 'typebox';
import { nullable } from './fields.js';

/** Choices are generated one after another, so more would occupy a machine's slot for too long. */
export const MAX_CHOICES = 16;

/** Token limit of each choice, where the client names none. Applied by coordinators. */
export const DEFAULT_MAX_TOKENS = 8192;

export const choices = nullable(Type.Integer({ minimum: 1, maximum: MAX_CHOICES }), `an integer from 1 to ${MAX_CHOICES}`);

/** Parameters for routing and reservation: the limit of all choices together. `maxTokens`: of each. */
export function choiceParams(count: number, maxTokens: number | null): { readonly maxTokens: number | null; readonly choices?: number } {
  return count === 1 ? { maxTokens } : { maxTokens: count * (maxTokens ?? DEFAULT_MAX_TOKENS), choices: count };
}
