/** What both sides of the engine bench are asked. */

/** Tokens that each answer has; a random-weight model hardly ever stops by itself. */
export const GENERATED_TOKENS = 256;

/** A prompt of its own for each request, so that nothing is answered from a warm prefix alone. */
export function prompt(index: number): string {
  return `Please write about number ${index} and what it is good for.`;
}
