/** `messagesAnswer` returns the renderers for the response to a Messages request, streamed or not. */
import { anthropicErrorBody } from '../errors/anthropic-error.js';
import type { AnswerFormat, PlainRenderer, ResponseMetadata } from '../format.js';
import { plainRenderer, Transcript } from '../output/transcript.js';
import { signatureComment } from '../signature.js';
import { sseEvent } from '../sse.js';
import { blockOf, endOf, messageOf, usageOf } from './message.js';
import { MessagesStreamRenderer } from './render-stream.js';

function messagesPlainRenderer(responseMetadata: ResponseMetadata, options: MessagesAnswerOptions): PlainRenderer {
  const transcript = new Transcript(options);
  return plainRenderer(transcript, (finish) => {
    transcript.addEmptyText();
    const blocks = transcript.items.map((item) => blockOf(item, responseMetadata));
    return messageOf(responseMetadata, blocks, endOf(finish), usageOf(finish, options));
  });
}

export interface MessagesAnswerOptions {
  /** Think segments are rendered as thinking blocks. */
  readonly showReasoning: boolean;
  /** The request has `cache_control`, so cached tokens are reported separately. */
  readonly usesCacheControl: boolean;
}

export function messagesAnswer(options: MessagesAnswerOptions): AnswerFormat {
  return {
    idPrefix: 'msg_',
    callIdPrefix: 'toolu_',
    terminalEvents: ['message_stop'],
    bodyMember: { name: 'type', value: 'message' },
    stream: (responseMetadata) => new MessagesStreamRenderer(responseMetadata, options),
    plain: (responseMetadata) => messagesPlainRenderer(responseMetadata, options),
    signatureEvent: (_responseMetadata, signed) => signatureComment(signed),
    streamError: (error, requestId) => sseEvent('error', anthropicErrorBody(error, requestId)),
  };
}
