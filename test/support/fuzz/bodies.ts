/** Valid request bodies, shortened from real clients. The fuzzer mutates these. */

export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };

export const PATHS = [
  '/v1/chat/completions',
  '/v1/completions',
  '/v1/responses',
  '/v1/messages',
  '/v1/messages/count_tokens',
  '/v1/embeddings',
] as const;
export type FuzzedPath = (typeof PATHS)[number];

const parameters = {
  $schema: 'http://json-schema.org/draft-07/schema#',
  type: 'object',
  properties: { city: { type: 'string' }, unit: { enum: ['c', 'f'] }, days: { type: 'integer', minimum: 1 } },
  required: ['city'],
  additionalProperties: false,
};
const answer = {
  type: 'object',
  properties: { city: { type: 'string' }, unit: { enum: ['c', 'f'] } },
  required: ['city', 'unit'],
  additionalProperties: false,
};
const cache_control = { type: 'ephemeral' };

const claudeCode = (model: string): Json => ({
  model,
  max_tokens: 20,
  stream: true,
  system: [{ type: 'text', text: 'You are an agent.', cache_control }],
  messages: [
    { role: 'user', content: [{ type: 'text', text: 'Say hello.', cache_control }] },
    { role: 'system', content: 'A reminder.' },
    { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'Bash', input: { command: 'ls' } }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'a.txt', is_error: false }] },
  ],
  tools: [{ name: 'Bash', description: 'Runs a command.', input_schema: parameters }],
  tool_choice: { type: 'auto', disable_parallel_tool_use: true },
  metadata: { user_id: '{"device_id":"d"}' },
  thinking: { type: 'adaptive' },
  output_config: { effort: 'high' },
  context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] },
});

const codex = (model: string): Json => ({
  model,
  stream: true,
  max_output_tokens: 20,
  input: [
    { type: 'message', role: 'developer', id: 'msg_1', content: [{ type: 'input_text', text: 'Rules.' }] },
    { type: 'message', role: 'user', id: 'msg_2', content: [{ type: 'input_text', text: 'Say hello.' }] },
    { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'shell', arguments: '{"command":"ls"}', status: 'completed' },
    { type: 'function_call_output', call_id: 'call_1', output: 'a.txt' },
  ],
  tools: [
    { type: 'function', name: 'shell', description: 'Runs a command.', strict: false, parameters },
    { type: 'namespace', name: 'web', tools: [{ type: 'function', name: 'open', parameters }] },
    { type: 'web_search' },
  ],
  tool_choice: 'auto',
  parallel_tool_calls: true,
  reasoning: { summary: 'auto' },
  store: false,
  include: ['reasoning.encrypted_content'],
  prompt_cache_key: 'key',
});

const structuredResponse = (model: string): Json => ({
  model,
  input: [{ role: 'user', content: 'Answer in JSON.' }],
  max_output_tokens: 20,
  text: { format: { type: 'json_schema', name: 'answer', strict: true, schema: answer } },
});

const chat = (model: string): Json => ({
  model,
  messages: [
    { role: 'developer', content: 'Rules.' },
    { role: 'user', content: [{ type: 'text', text: 'What is the weather?' }] },
    { role: 'assistant', content: null, tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'weather', arguments: '{}' } }] },
    { role: 'tool', tool_call_id: 'call_1', content: 'sunny' },
  ],
  max_completion_tokens: 20,
  temperature: 0.7,
  top_p: 0.9,
  stop: ['END', '\n\n'],
  seed: 7,
  frequency_penalty: 0.1,
  presence_penalty: 0,
  tools: [{ type: 'function', function: { name: 'weather', description: 'Tells it.', parameters, strict: true } }],
  tool_choice: 'auto',
  response_format: { type: 'text' },
  stream: true,
  stream_options: { include_usage: true },
  user: 'someone',
  n: 1,
});

const structured = (model: string): Json => ({
  model,
  messages: [{ role: 'user', content: 'Answer in JSON.' }],
  max_tokens: 20,
  response_format: { type: 'json_schema', json_schema: { name: 'answer', strict: true, schema: answer } },
});

/** Every parameter that affects sampling. */
const sampled = (model: string): Json => ({
  model,
  messages: [{ role: 'user', content: 'Hi' }],
  max_tokens: 8,
  temperature: 1.2,
  top_p: 0.8,
  top_k: 20,
  min_p: 0.05,
  frequency_penalty: 0.5,
  presence_penalty: -0.5,
  logit_bias: { '5': -100, '40': 3.5 },
  seed: -9,
  logprobs: true,
  top_logprobs: 3,
});

const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQmCC';
const pixelUri = `data:image/png;base64,${PIXEL}`;

const chatWithImages = (model: string): Json => ({
  model,
  messages: [
    {
      role: 'user',
      content: [
        { type: 'text', text: 'What is it?' },
        { type: 'image_url', image_url: { url: pixelUri, detail: 'low' } },
        { type: 'file', file: { filename: 'a.png', file_data: pixelUri } },
      ],
    },
    { role: 'assistant', tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'screenshot', arguments: '{}' } }] },
    { role: 'tool', tool_call_id: 'call_1', content: [{ type: 'image_url', image_url: { url: pixelUri } }] },
  ],
  max_tokens: 5,
});

const responseWithImages = (model: string): Json => ({
  model,
  max_output_tokens: 20,
  input: [
    { role: 'user', content: [{ type: 'input_image', image_url: pixelUri, detail: 'auto' }] },
    { type: 'function_call', call_id: 'call_1', name: 'screenshot', arguments: '{}' },
    { type: 'function_call_output', call_id: 'call_1', output: [{ type: 'input_image', image_url: pixelUri }] },
  ],
});

const imageBlock: Json = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PIXEL } };

const messagesWithImages = (model: string): Json => ({
  model,
  max_tokens: 20,
  messages: [
    { role: 'user', content: [imageBlock, { type: 'text', text: 'What is it?' }] },
    { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'screenshot', input: {} }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: [imageBlock] }] },
  ],
});

/** Valid bodies with images for each path. The model must read images. */
export function bodiesWithImages(path: FuzzedPath, model: string): readonly Json[] {
  switch (path) {
    case '/v1/chat/completions':
      return [chatWithImages(model)];
    case '/v1/responses':
      return [responseWithImages(model)];
    case '/v1/messages':
    case '/v1/messages/count_tokens':
      return [messagesWithImages(model)];
    default:
      return [];
  }
}

/** Valid bodies for each path. The model of `/v1/embeddings` must be an embedding model. */
export function bodiesOf(path: FuzzedPath, model: string): readonly Json[] {
  switch (path) {
    case '/v1/chat/completions':
      return [chat(model), structured(model), sampled(model), { model, messages: [{ role: 'user', content: 'Hi' }], max_tokens: 5 }];
    case '/v1/completions':
      return [
        { model, prompt: 'Once upon a time', max_tokens: 8, temperature: 1, stop: 'END', stream: false, logprobs: null, echo: false },
        { model, prompt: 'Once', max_tokens: 8, logprobs: 2, logit_bias: { '7': 1 }, seed: 3, stream: true },
      ];
    case '/v1/responses':
      return [codex(model), structuredResponse(model), { model, input: 'Hi', max_output_tokens: 20 }, chat(model)];
    case '/v1/messages':
      return [claudeCode(model), { model, max_tokens: 20, messages: [{ role: 'user', content: 'Hi' }], stop_sequences: ['END'], top_k: 3 }];
    case '/v1/messages/count_tokens':
      return [{ model, messages: [{ role: 'user', content: 'Hi' }], system: 'Rules.', tools: [{ name: 'x', input_schema: parameters }] }];
    case '/v1/embeddings':
      return [
        { model, input: 'The sun is a star.', encoding_format: 'float', user: 'someone' },
        { model, input: ['One text.', 'Another.'], encoding_format: 'base64', dimensions: null },
        { model, input: [5, 6, 7] },
        { model, input: [[5, 6, 7], [8]] },
      ];
  }
}
