/** Response bodies as providers render them, without members that the client adds. */
import { type OpenedE2eRequest, toBase64 } from '@inference/protocol';
import { MODEL, type ScriptedAnswer } from './scripted-network.js';

const usage = { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 };
const chunk = (members: object): string =>
  `data: ${JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: MODEL, ...members })}\n\n`;
const event = (type: string, members: object): string => `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`;

/** Answers any request in the format of its endpoint, with the text "Hello". */
export function hello({ context }: OpenedE2eRequest): ScriptedAnswer {
  return { body: BODIES[`${context.endpoint}${context.stream ? ' stream' : ''}`] ?? [] };
}

const message = { id: 'msg_1', type: 'message', role: 'assistant', model: MODEL, stop_sequence: null };
const response = {
  id: 'resp_1',
  object: 'response',
  created_at: 1,
  model: MODEL,
  parallel_tool_calls: true,
  tools: [],
  tool_choice: 'auto',
};
const output = [
  {
    type: 'message',
    id: 'item_1',
    role: 'assistant',
    status: 'completed',
    content: [{ type: 'output_text', text: 'Hello', annotations: [] }],
  },
];
const responseUsage = { input_tokens: 1, output_tokens: 2, total_tokens: 3 };

const BODIES: Readonly<Record<string, readonly string[]>> = {
  '/v1/chat/completions': [
    JSON.stringify({
      id: 'chatcmpl-1',
      object: 'chat.completion',
      created: 1,
      model: MODEL,
      choices: [{ index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' }],
      usage,
    }),
  ],
  '/v1/chat/completions stream': [
    chunk({ choices: [{ index: 0, delta: { role: 'assistant', content: 'Hel' }, finish_reason: null }] }),
    chunk({ choices: [{ index: 0, delta: { content: 'lo' }, finish_reason: null }] }),
    chunk({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }),
  ],
  '/v1/completions': [
    JSON.stringify({
      id: 'cmpl-1',
      object: 'text_completion',
      created: 1,
      model: MODEL,
      choices: [{ index: 0, text: 'Hello', finish_reason: 'stop' }],
      usage,
    }),
  ],
  '/v1/messages': [
    JSON.stringify({
      ...message,
      content: [{ type: 'text', text: 'Hello' }],
      stop_reason: 'end_turn',
      usage: { input_tokens: 1, output_tokens: 2 },
    }),
  ],
  '/v1/messages stream': [
    event('message_start', { message: { ...message, content: [], stop_reason: null, usage: { input_tokens: 1, output_tokens: 0 } } }) +
      event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
    event('content_block_delta', { index: 0, delta: { type: 'text_delta', text: 'Hello' } }),
    event('content_block_stop', { index: 0 }) +
      event('message_delta', { delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { input_tokens: 1, output_tokens: 2 } }) +
      event('message_stop', {}),
  ],
  '/v1/responses': [JSON.stringify({ ...response, status: 'completed', output, usage: responseUsage })],
  '/v1/responses stream': [
    event('response.created', { sequence_number: 0, response: { ...response, status: 'in_progress', output: [] } }),
    event('response.output_text.delta', { sequence_number: 1, item_id: 'item_1', output_index: 0, content_index: 0, delta: 'Hello' }),
    event('response.completed', { sequence_number: 2, response: { ...response, status: 'completed', output, usage: responseUsage } }),
  ],
  '/v1/messages/count_tokens': [JSON.stringify({ input_tokens: 1 })],
  '/v1/embeddings': [
    JSON.stringify({
      object: 'list',
      data: [{ object: 'embedding', index: 0, embedding: 'AACAPwAAAEA=' }],
      model: MODEL,
      usage: { prompt_tokens: 1, total_tokens: 3 },
    }),
  ],
};

/** Images of an answer, in base64 inside its body. */
export const IMAGES = [Uint8Array.of(1, 2, 3), Uint8Array.of(4, 5)];
export const IMAGES_BODY = JSON.stringify({
  created: 1,
  data: IMAGES.map((image) => ({ b64_json: toBase64(image) })),
  output_format: 'png',
  size: '8x8',
  usage: { input_tokens: 1, input_tokens_details: { image_tokens: 0, text_tokens: 1 }, output_tokens: 2, total_tokens: 3 },
});
