/** `chatEvents`: parses the events of a chat stream that the playground uses. */
import type { TokenUsage } from '../chat/conversation.js';
import { member, parseJson } from '../json.js';

type ChatEvent =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'finish'; readonly reason: string }
  | { readonly type: 'usage'; readonly usage: TokenUsage }
  | { readonly type: 'signature' }
  | { readonly type: 'error'; readonly message: string }
  | { readonly type: 'end' }
  /** Ignored. */
  | { readonly type: 'other' };

/** Parses the data of an SSE event. One event may contain several facts, such as text and usage. */
export function chatEvents(data: string): ChatEvent[] {
  if (data === '[DONE]') return [{ type: 'end' }];
  const value = parseJson(data);
  if (value === null) return [{ type: 'other' }];
  const error = member(value, 'error');
  if (error !== undefined) {
    const message = member(error, 'message');
    return [{ type: 'error', message: typeof message === 'string' ? message : 'The answer ended in an error.' }];
  }
  const events: ChatEvent[] = [];
  const choice = member(member(value, 'choices'), '0');
  const text = member(member(choice, 'delta'), 'content');
  if (typeof text === 'string' && text !== '') events.push({ type: 'text', text });
  const reason = member(choice, 'finish_reason');
  if (typeof reason === 'string') events.push({ type: 'finish', reason });
  const usage = member(value, 'usage');
  const [prompt, completion] = [member(usage, 'prompt_tokens'), member(usage, 'completion_tokens')];
  if (typeof prompt === 'number' && typeof completion === 'number') events.push({ type: 'usage', usage: { prompt, completion } });
  if (typeof member(value, 'se_signature') === 'string') events.push({ type: 'signature' });
  return events.length === 0 ? [{ type: 'other' }] : events;
}
