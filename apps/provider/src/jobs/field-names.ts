/** `fieldNames`: names of request fields in each request format, for errors that are found after parsing. */
import type { ParsedRequest } from '@inference/formats';

export interface FieldNames {
  readonly prompt: string;
  readonly maxTokens: string;
  readonly responseFormat: string;
  readonly responseSchema: string;
}

const CHAT: FieldNames = {
  prompt: 'messages',
  maxTokens: 'max_tokens',
  responseFormat: 'response_format',
  responseSchema: 'response_format.json_schema.schema',
};

export function fieldNames({ params, answer }: Pick<ParsedRequest, 'params' | 'answer'>): FieldNames {
  switch (params.endpoint) {
    case '/v1/chat/completions':
      return CHAT;
    case '/v1/responses':
      // A body with `messages` is treated as a chat completion.
      if (answer.idPrefix === 'chatcmpl-') return CHAT;
      return { prompt: 'input', maxTokens: 'max_output_tokens', responseFormat: 'text.format', responseSchema: 'text.format.schema' };
    case '/v1/completions':
      return { ...CHAT, prompt: 'prompt' };
    case '/v1/messages':
    case '/v1/messages/count_tokens':
      return { ...CHAT, responseFormat: 'output_config.format', responseSchema: 'output_config.format.schema' };
    case '/v1/embeddings':
      return { ...CHAT, prompt: 'input', responseFormat: 'encoding_format', responseSchema: 'encoding_format' };
    case '/v1/images/generations':
      return { ...CHAT, prompt: 'prompt', responseSchema: 'response_format' };
    default:
      return params.endpoint satisfies never;
  }
}
