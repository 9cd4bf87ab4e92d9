/** One format per endpoint. */
import type { Endpoint, ModelType } from '@inference/protocol';
import { anthropicError } from './anthropic-error.js';
import { chatCompletions } from './chat-completions/chat-completions.js';
import { completions } from './completions/completions.js';
import { embeddings } from './embeddings/embeddings.js';
import type { ApiError, HttpError } from './errors.js';
import type { EmbeddingFormat, ImageFormat, TextFormat } from './format.js';
import { images } from './images/images.js';
import { countTokens, messages } from './messages/messages.js';
import { oauthError } from './oauth-error.js';
import { openAiError } from './open-ai-error.js';
import { responses } from './responses/responses.js';

/** Endpoints with generated text. */
export type TextEndpoint = Exclude<Endpoint, '/v1/embeddings' | '/v1/images/generations'>;

const FORMATS: Readonly<Record<TextEndpoint, TextFormat>> = {
  '/v1/chat/completions': chatCompletions,
  '/v1/completions': completions,
  '/v1/responses': responses,
  '/v1/messages': messages,
  '/v1/messages/count_tokens': countTokens,
};

export function formatFor(endpoint: TextEndpoint): TextFormat;
export function formatFor(endpoint: '/v1/images/generations'): ImageFormat;
export function formatFor(endpoint: TextEndpoint | '/v1/embeddings'): TextFormat | EmbeddingFormat;
export function formatFor(endpoint: Endpoint): TextFormat | EmbeddingFormat | ImageFormat;
export function formatFor(endpoint: Endpoint): TextFormat | EmbeddingFormat | ImageFormat {
  switch (endpoint) {
    case '/v1/embeddings':
      return embeddings;
    case '/v1/images/generations':
      return images;
    default:
      return FORMATS[endpoint];
  }
}

/** Model type required by an endpoint. */
export function modelTypeOf(endpoint: Endpoint): ModelType {
  switch (endpoint) {
    case '/v1/embeddings':
      return 'embedding';
    case '/v1/images/generations':
      return 'image';
    default:
      return 'text';
  }
}

/**
 * Error in the shape of the path's clients, also for unknown paths. On paths used by both kinds of clients, `messagesClient` selects the
 * shape. Paths under `/oauth` use the OAuth shape.
 */
export function errorAt(path: string, error: ApiError, requestId?: string, messagesClient = false): HttpError {
  if (path.startsWith('/oauth/')) return oauthError(error);
  const isShared = isAt(path, '/v1/models') || error.code === 'not_found';
  return isAt(path, '/v1/messages') || (messagesClient && isShared) ? anthropicError(error, requestId) : openAiError(error);
}

function isAt(path: string, place: string): boolean {
  return path === place || path.startsWith(`${place}/`);
}
