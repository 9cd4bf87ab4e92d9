/** How the answer to a Messages request is written. */
import { anthropicErrorBody } from '../anthropic-error.js';
import type { AnswerFormat } from '../format.js';
import { signatureComment } from '../signature.js';
import { sseEvent } from '../sse.js';
import { MessagesPlainRenderer } from './render-plain.js';
import { MessagesStreamRenderer } from './render-stream.js';

export interface MessagesAnswerOptions {
  /** Think sections are shown as thinking blocks. */
  readonly showReasoning: boolean;
  /** The request has a `cache_control`: cached tokens are reported apart. */
  readonly usesCacheControl: boolean;
}

export function messagesAnswer(options: MessagesAnswerOptions): AnswerFormat {
  return {
    idPrefix: 'msg_',
    callIdPrefix: 'toolu_',
    stream: (envelope) => new MessagesStreamRenderer(envelope, options),
    plain: (envelope) => new MessagesPlainRenderer(envelope, options),
    signatureEvent: (_envelope, signed) => signatureComment(signed),
    streamError: (error, requestId) => sseEvent('error', anthropicErrorBody(error, requestId)),
  };
}
