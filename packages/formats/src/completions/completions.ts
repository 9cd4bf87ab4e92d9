/** The legacy text completion format (POST /v1/completions). */
import type { TextFormat } from '../format.js';
import { openAiError } from '../open-ai-error.js';
import { ENDPOINT, parseCompletion } from './parse.js';

export const completions: TextFormat = { endpoint: ENDPOINT, parse: parseCompletion, error: openAiError };
