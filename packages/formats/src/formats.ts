/** The formats, one per endpoint. */
import type { Endpoint } from '@inference/protocol';
import { chatCompletions } from './chat-completions/chat-completions.js';
import { completions } from './completions/completions.js';
import type { TextFormat } from './format.js';
import { countTokens, messages } from './messages/messages.js';
import { responses } from './responses/responses.js';

const FORMATS: Readonly<Record<Endpoint, TextFormat>> = {
  '/v1/chat/completions': chatCompletions,
  '/v1/completions': completions,
  '/v1/responses': responses,
  '/v1/messages': messages,
  '/v1/messages/count_tokens': countTokens,
};

export function formatFor(endpoint: Endpoint): TextFormat {
  return FORMATS[endpoint];
}
