/** How the answer to a chat completion request is written. */

import { openAiErrorBody } from '../errors/open-ai-error.js';
import type { AnswerFormat } from '../format.js';
import { sseData } from '../sse.js';
import type { ChatAnswerOptions } from './answer-options.js';
import { ChatPlainRenderer } from './render-plain.js';
import { ChatStreamRenderer, chatSignatureEvent } from './render-stream.js';

export function chatAnswer(options: ChatAnswerOptions): AnswerFormat {
  return {
    idPrefix: 'chatcmpl-',
    stream: (envelope) => new ChatStreamRenderer(envelope, options),
    plain: (envelope) => new ChatPlainRenderer(envelope, options),
    signatureEvent: chatSignatureEvent,
    streamError: (error) => sseData(openAiErrorBody(error)),
  };
}
