/** The Responses format (POST /v1/responses). */
import type { TextFormat } from '../format.js';
import { openAiError } from '../open-ai-error.js';
import { ENDPOINT, parseResponses } from './parse.js';

export const responses: TextFormat = { endpoint: ENDPOINT, parse: parseResponses, error: openAiError };
