/**
 * Bounds of a usage that both sides know from the bytes alone. An agent reports no more, so that a signed usage beyond them is a lie
 * and never an accident: of a chat template that repeats much, or of a model that writes what leaves no bytes.
 */

/**
 * Tokens that a chat template may add by itself: a default system prompt, instructions for tools, the date. What a template adds
 * per message is less than the JSON around that message, which is counted as bytes.
 */
export const TEMPLATE_TOKENS = 512;

/**
 * Tokens without a byte of their own in the answer: end tokens, a stop sequence that was withheld, and the characters that
 * several tokens make together.
 */
export const SILENT_TOKENS = 64;

/** Maximum of prompt tokens for a request body: a token covers at least one byte of it, besides what the template adds. */
export function promptTokenBound(bodyBytes: number): number {
  return bodyBytes + TEMPLATE_TOKENS;
}

/** Maximum of completion tokens outside of think sections, for an answer of so many bytes. */
export function visibleTokenBound(answerBytes: number): number {
  return answerBytes + SILENT_TOKENS;
}
