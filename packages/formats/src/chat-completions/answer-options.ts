/** Parameters of a chat completion request that affect the rendering of its response. */
import type { CompletedFinishReason } from '../output-event.js';

export interface ChatAnswerOptions {
  /** The client requested a usage chunk at the end of the stream. */
  readonly includeUsage: boolean;
  /** Think sections are shown as `reasoning_content`. */
  readonly showReasoning: boolean;
  readonly logprobs: boolean;
  /** The client named a service tier; the response then names `default`, the only tier. */
  readonly reportsServiceTier: boolean;
  /** The client gave `functions`, so a call is shown as `function_call`. */
  readonly legacyFunctions: boolean;
}

/** Tier name of the real API for requests without a special tier. */
export const SERVICE_TIER = 'default';

export function shownReason(reason: CompletedFinishReason, { legacyFunctions }: Pick<ChatAnswerOptions, 'legacyFunctions'>) {
  return legacyFunctions && reason === 'tool_calls' ? 'function_call' : reason;
}
