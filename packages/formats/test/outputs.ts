/** Model outputs with which all formats are tested. */
import type { OutputEvent } from '../src/output-event.js';

const usage = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18, cached_tokens: 4 };
const start: OutputEvent = { type: 'start', promptTokens: 11, cachedTokens: 4 };
const finish = { type: 'finish', reason: 'stop', usage, hiddenTokens: 3 } as const;

export const TEXT = 'Héllo 😀\n"\\ \u2028 data: [DONE]\n\n';
export const text: OutputEvent[] = [
  start,
  { type: 'reasoning', text: 'think ' },
  { type: 'reasoning', text: 'hard' },
  { type: 'text', text: 'Héllo 😀' },
  { type: 'text', text: '' },
  { type: 'ping' },
  { type: 'text', text: '\n"\\ \u2028 data: [DONE]\n\n' },
  finish,
];

export const ARGUMENTS = '{"city":"Genève","days":[1,2]}';
export const calls: OutputEvent[] = [
  start,
  { type: 'text', text: 'Let me look.' },
  { type: 'tool_call_start', index: 0, id: 'call_a', name: 'weather' },
  { type: 'tool_call_arguments', index: 0, delta: '{"city":"Gen' },
  { type: 'tool_call_arguments', index: 0, delta: 'ève","days":[1,2]}' },
  { type: 'tool_call_start', index: 1, id: 'call_b', name: 'time' },
  { type: 'tool_call_arguments', index: 1, delta: '{}' },
  { ...finish, reason: 'tool_calls' },
];

/** The token limit ends the output inside a think section. */
export const cutInThinking: OutputEvent[] = [start, { type: 'reasoning', text: 'think' }, { ...finish, reason: 'length' }];
export const stopped: OutputEvent[] = [start, { type: 'text', text: 'one ' }, { ...finish, stopSequence: 'END' }];
export const empty: OutputEvent[] = [start, finish];
