/** What of a chat completion request shows in its answer. */
import type { AnswerEnding } from '../output-event.js';

export interface ChatAnswerOptions {
  /** The client asked for a usage chunk at the end of its stream. */
  readonly includeUsage: boolean;
  /** Think sections are shown as `reasoning_content`. */
  readonly showReasoning: boolean;
  readonly logprobs: boolean;
  /** The client asked for a service tier, and is told the only one there is. */
  readonly tellsTier: boolean;
  /** The client gave `functions`, so a call is shown as `function_call`. */
  readonly legacyFunctions: boolean;
}

/** The real API's name for the tier of requests that get no other. */
export const SERVICE_TIER = 'default';

export function shownReason(reason: AnswerEnding, { legacyFunctions }: Pick<ChatAnswerOptions, 'legacyFunctions'>) {
  return legacyFunctions && reason === 'tool_calls' ? 'function_call' : reason;
}
