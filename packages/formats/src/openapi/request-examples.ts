/** Example requests of the inference endpoints for the OpenAPI document. Tests send them to a network. */
import type { Endpoint } from '@inference/protocol';

export const EXAMPLE_MODEL = 'qwen3-8b';

type Body = Readonly<Record<string, unknown>>;

const messages = [{ role: 'user', content: 'What is the capital of France?' }];

export const REQUEST_EXAMPLES: Readonly<Record<Endpoint, Body>> = {
  '/v1/chat/completions': { model: EXAMPLE_MODEL, messages, max_tokens: 256 },
  '/v1/completions': { model: EXAMPLE_MODEL, prompt: 'The capital of France is', max_tokens: 16 },
  '/v1/responses': { model: EXAMPLE_MODEL, input: 'What is the capital of France?' },
  '/v1/messages': { model: EXAMPLE_MODEL, max_tokens: 256, messages },
  '/v1/messages/count_tokens': { model: EXAMPLE_MODEL, messages },
  '/v1/embeddings': { model: EXAMPLE_MODEL, input: ['first text', 'second text'] },
  '/v1/images/generations': { model: EXAMPLE_MODEL, prompt: 'a red square on a blue background', size: '1024x1024' },
};

const QUESTION = 'What colour is this pixel?';
/** PNG of a single red pixel, in base64. */
const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQmCC';
const pixelUri = `data:image/png;base64,${PIXEL}`;
const question = { type: 'text', text: QUESTION };
const chat = [{ role: 'user', content: [question, { type: 'image_url', image_url: { url: pixelUri } }] }];
const input = [
  {
    role: 'user',
    content: [
      { type: 'input_text', text: QUESTION },
      { type: 'input_image', image_url: pixelUri },
    ],
  },
];
const blocks = [{ role: 'user', content: [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: PIXEL } }, question] }];

/** Examples with an image in the prompt, for vision models. */
export const IMAGE_PROMPT_EXAMPLES: Readonly<Partial<Record<Endpoint, Body>>> = {
  '/v1/chat/completions': { model: EXAMPLE_MODEL, messages: chat, max_tokens: 256 },
  '/v1/responses': { model: EXAMPLE_MODEL, input },
  '/v1/messages': { model: EXAMPLE_MODEL, max_tokens: 256, messages: blocks },
  '/v1/messages/count_tokens': { model: EXAMPLE_MODEL, messages: blocks },
};
