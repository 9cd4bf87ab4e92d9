/** The chat completions format (POST /v1/chat/completions). */
import type { TextFormat } from '../format.js';
import { openAiErrorBody } from '../open-ai-error.js';
import { sseData } from '../sse.js';
import { ENDPOINT, parseChatCompletion } from './parse.js';
import { ChatPlainRenderer } from './render-plain.js';
import { ChatStreamRenderer, chatSignatureEvent } from './render-stream.js';

export const chatCompletions: TextFormat = {
  endpoint: ENDPOINT,
  parse: parseChatCompletion,
  stream: (envelope, request) => new ChatStreamRenderer(envelope, request.includeUsage),
  plain: (envelope) => new ChatPlainRenderer(envelope),
  signatureEvent: chatSignatureEvent,
  streamError: (error) => sseData(openAiErrorBody(error)),
};
