/** How the answer to a Messages request is written. */
import { anthropicErrorBody } from '../errors/anthropic-error.js';
import type { AnswerFormat, Envelope, PlainRenderer } from '../format.js';
import { plainRenderer, Transcript } from '../output/transcript.js';
import { signatureComment } from '../signature.js';
import { sseEvent } from '../sse.js';
import { blockOf, endOf, messageOf, usageOf } from './message.js';
import { MessagesStreamRenderer } from './render-stream.js';

/** Renders a message as one JSON body. */
function messagesPlainRenderer(envelope: Envelope, options: MessagesAnswerOptions): PlainRenderer {
  const transcript = new Transcript(options);
  return plainRenderer(transcript, (finish) => {
    transcript.addEmptyText();
    const blocks = transcript.items.map((item) => blockOf(item, envelope));
    return messageOf(envelope, blocks, endOf(finish), usageOf(finish, options));
  });
}

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
    plain: (envelope) => messagesPlainRenderer(envelope, options),
    signatureEvent: (_envelope, signed) => signatureComment(signed),
    streamError: (error, requestId) => sseEvent('error', anthropicErrorBody(error, requestId)),
  };
}
