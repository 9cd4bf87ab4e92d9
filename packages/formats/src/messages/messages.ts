/** The Messages format (POST /v1/messages) and token counting (POST /v1/messages/count_tokens). */
import { anthropicError } from '../anthropic-error.js';
import type { TextFormat } from '../format.js';
import { parseCountTokens, parseMessages } from './parse.js';

export const messages: TextFormat = { endpoint: '/v1/messages', parse: parseMessages, error: anthropicError };

export const countTokens: TextFormat = { endpoint: '/v1/messages/count_tokens', parse: parseCountTokens, error: anthropicError };
