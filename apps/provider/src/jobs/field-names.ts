/** Field names per request format, for errors found by the engine. */
import type { ParsedRequest } from '@inference/formats';

export interface FieldNames {
  readonly prompt: string;
  readonly responseFormat: string;
  readonly responseSchema: string;
}

const CHAT: FieldNames = {
  prompt: 'messages',
  responseFormat: 'response_format',
  responseSchema: 'response_format.json_schema.schema',
};

/** Field names of a request in its own format. */
export function fieldNames({ params, answer }: Pick<ParsedRequest, 'params' | 'answer'>): FieldNames {
  switch (params.endpoint) {
    case '/v1/chat/completions':
      return CHAT;
    case '/v1/responses':
      // A body with `messages` is treated as a chat completion.
      if (answer.idPrefix === 'chatcmpl-') return CHAT;
      return { prompt: 'input', responseFormat: 'text.format', responseSchema: 'text.format.schema' };
    case '/v1/completions':
      return { ...CHAT, prompt: 'prompt' };
    case '/v1/messages':
    case '/v1/messages/count_tokens':
      return { prompt: 'messages', responseFormat: 'output_config.format', responseSchema: 'output_config.format.schema' };
    case '/v1/embeddings':
      return { prompt: 'input', responseFormat: 'encoding_format', responseSchema: 'encoding_format' };
    case '/v1/images/generations':
      return { prompt: 'prompt', responseFormat: 'response_format', responseSchema: 'response_format' };
    default:
      return params.endpoint satisfies never;
  }
}
