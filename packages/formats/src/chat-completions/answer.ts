/** How the answer to a chat completion request is written. */
import type { AnswerFormat } from '../format.js';
import { openAiErrorBody } from '../open-ai-error.js';
import { sseData } from '../sse.js';
import { ChatPlainRenderer } from './render-plain.js';
import { ChatStreamRenderer, chatSignatureEvent } from './render-stream.js';

/** What of a request shows in its answer. */
export interface ChatAnswerOptions {
  /** The client asked for a usage chunk at the end of its stream. */
  readonly includeUsage: boolean;
  /** Think sections are shown as `reasoning_content`. */
  readonly showReasoning: boolean;
  readonly logprobs: boolean;
}

export function chatAnswer(options: ChatAnswerOptions): AnswerFormat {
  return {
    idPrefix: 'chatcmpl-',
    stream: (envelope) => new ChatStreamRenderer(envelope, options),
    plain: (envelope) => new ChatPlainRenderer(envelope, options),
    signatureEvent: chatSignatureEvent,
    streamError: (error) => sseData(openAiErrorBody(error)),
  };
}
