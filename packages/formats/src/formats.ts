/** The formats, one per endpoint. */
import type { Endpoint } from '@inference/protocol';
import { chatCompletions } from './chat-completions/chat-completions.js';
import type { TextFormat } from './format.js';

const FORMATS: Readonly<Record<Endpoint, TextFormat>> = {
  '/v1/chat/completions': chatCompletions,
};

export function formatFor(endpoint: Endpoint): TextFormat {
  return FORMATS[endpoint];
}
