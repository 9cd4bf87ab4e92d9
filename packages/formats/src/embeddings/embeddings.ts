/** The embeddings format (POST /v1/embeddings). */
import type { EmbeddingFormat } from '../format.js';
import { openAiError } from '../open-ai-error.js';
import { ENDPOINT, parseEmbeddings } from './parse.js';

export const embeddings: EmbeddingFormat = { endpoint: ENDPOINT, parse: parseEmbeddings, error: openAiError };
