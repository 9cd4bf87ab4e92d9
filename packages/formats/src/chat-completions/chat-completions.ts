/** The chat completions format (POST /v1/chat/completions). */
import type { TextFormat } from '../format.js';
import { openAiError } from '../open-ai-error.js';
import { parseChatCompletion } from './parse.js';

const ENDPOINT = '/v1/chat/completions';

export const chatCompletions: TextFormat = {
  endpoint: ENDPOINT,
  parse: (body, options) => parseChatCompletion(body, ENDPOINT, options),
  error: openAiError,
};
