/** Example request of each inference endpoint, for the OpenAPI document. Tests send them to a network. */
import type { Endpoint } from '@inference/protocol';

/** Model id of the examples. */
export const EXAMPLE_MODEL = 'qwen3-8b';

const messages = [{ role: 'user', content: 'What is the capital of France?' }];

export const REQUEST_EXAMPLES: Readonly<Record<Endpoint, Readonly<Record<string, unknown>>>> = {
  '/v1/chat/completions': { model: EXAMPLE_MODEL, messages, max_tokens: 256 },
  '/v1/completions': { model: EXAMPLE_MODEL, prompt: 'The capital of France is', max_tokens: 16 },
  '/v1/responses': { model: EXAMPLE_MODEL, input: 'What is the capital of France?' },
  '/v1/messages': { model: EXAMPLE_MODEL, max_tokens: 256, messages },
  '/v1/messages/count_tokens': { model: EXAMPLE_MODEL, messages },
  '/v1/embeddings': { model: EXAMPLE_MODEL, input: ['first text', 'second text'] },
  '/v1/images/generations': { model: EXAMPLE_MODEL, prompt: 'a red square on a blue background', size: '1024x1024' },
};
