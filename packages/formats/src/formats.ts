/** Selects the format of an endpoint, and the error format of a path. */
import type { Endpoint, ModelType } from '@inference/protocol';
import { parseChatCompletion } from './chat-completions/parse.js';
import { parseCompletion } from './completions/parse.js';
import { parseEmbeddings } from './embeddings/parse.js';
import { anthropicError } from './errors/anthropic-error.js';
import type { ApiError, HttpError } from './errors/errors.js';
import { oauthError } from './errors/oauth-error.js';
import { openAiError } from './errors/open-ai-error.js';
import type { EmbeddingFormat, ImageFormat, TextFormat } from './format.js';
import { parseImages } from './images/parse.js';
import { parseCountTokens, parseMessages } from './messages/parse.js';
import { parseResponses } from './responses/parse.js';

/** Endpoints that use text models. */
export type TextEndpoint = Exclude<Endpoint, '/v1/embeddings' | '/v1/images/generations'>;

type Formats = Readonly<Record<TextEndpoint, TextFormat>> & {
  readonly '/v1/embeddings': EmbeddingFormat;
  readonly '/v1/images/generations': ImageFormat;
};

const FORMATS: Formats = {
  '/v1/chat/completions': { parse: parseChatCompletion, error: openAiError },
  '/v1/completions': { parse: parseCompletion, error: openAiError },
  '/v1/responses': { parse: parseResponses, error: openAiError },
  '/v1/messages': { parse: parseMessages, error: anthropicError },
  '/v1/messages/count_tokens': { parse: parseCountTokens, error: anthropicError },
  '/v1/embeddings': { parse: parseEmbeddings, error: openAiError },
  '/v1/images/generations': { parse: parseImages, error: openAiError },
};

export function formatFor<Path extends Endpoint>(endpoint: Path): Formats[Path] {
  return FORMATS[endpoint];
}

/** Endpoints whose prompts may have images. */
export function takesImages(endpoint: Endpoint): boolean {
  switch (endpoint) {
    case '/v1/chat/completions':
    case '/v1/responses':
    case '/v1/messages':
    case '/v1/messages/count_tokens':
      return true;
    default:
      return false;
  }
}

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
 * Error response in the format that clients of the path expect: OAuth's, Anthropic's, or else OpenAI's.
 *
 * @param isMessagesClient Whether the client uses the Messages format. Matters for model lists and unknown paths.
 */
export function errorAt(path: string, error: ApiError, requestId?: string, isMessagesClient = false): HttpError {
  if (path.startsWith('/oauth/')) return oauthError(error);
  const isShared = isAt(path, '/v1/models') || error.code === 'not_found';
  return isAt(path, '/v1/messages') || (isMessagesClient && isShared) ? anthropicError(error, requestId) : openAiError(error);
}

function isAt(path: string, place: string): boolean {
  return path === place || path.startsWith(`${place}/`);
}
