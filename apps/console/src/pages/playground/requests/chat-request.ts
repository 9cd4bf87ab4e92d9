/** `sendChatRequest`: sends a chat request and reads the stream. Returns the exact bytes, which verification needs. */
import type { TokenUsage } from '../chat/conversation.js';
import { member, parseJson } from '../json.js';
import { type Call, call, connectionFailure, type Deadline } from './call.js';
import { CUT_OFF, NO_ANSWER, problemFromStream, type RequestFailure } from './problems.js';
import { type ProviderFacts, providerFacts } from './provider-facts.js';

/** Maximum time without data. While a job is silent, the coordinator sends comments. */
const MAX_SILENCE_MS = 45_000;
/** Maximum bytes of a response. */
const MAX_BYTES = 32 * 1024 * 1024;

export interface ChatListener {
  /** Called when the response headers arrive. Null: they name no provider. */
  onProvider(provider: ProviderFacts | null): void;
  onText(delta: string): void;
}

export type ChatOutcome =
  | {
      readonly kind: 'complete';
      /** Complete body. */
      readonly bytes: Uint8Array;
      readonly usage: TokenUsage | null;
      readonly finishReason: string | null;
    }
  | { readonly kind: 'stopped' }
  | RequestFailure;

export async function sendChatRequest(request: Omit<Call, 'path'>, listener: ChatListener): Promise<ChatOutcome> {
  const called = await call({ ...request, path: '/v1/chat/completions' });
  if (called.kind !== 'answer') return called;
  const { response, deadline } = called;
  if (!(response.headers.get('content-type') ?? '').startsWith('text/event-stream') || response.body === null) {
    deadline.clear();
    await response.body?.cancel();
    return { kind: 'failed', status: null, problem: NO_ANSWER };
  }
  listener.onProvider(providerFacts(response.headers));
  const reader = response.body.getReader();
  try {
    return await readAnswer(reader, listener, deadline);
  } catch {
    return connectionFailure(request.signal, deadline);
  } finally {
    deadline.clear();
    // Closes the connection if the stream has not ended.
    await reader.cancel().catch(() => {});
  }
}

async function readAnswer(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  listener: ChatListener,
  deadline: Deadline,
): Promise<ChatOutcome> {
  const parts: Uint8Array[] = [];
  const sse = new SseReader();
  let [size, signed, ended] = [0, false, false];
  let usage: TokenUsage | null = null;
  let finishReason: string | null = null;
  for (;;) {
    deadline.restart(MAX_SILENCE_MS);
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value);
    size += value.length;
    if (size > MAX_BYTES) return { kind: 'failed', status: null, problem: NO_ANSWER };
    let delta = '';
    for (const event of sse.read(value).flatMap(chatEvents)) {
      if (event.type === 'text') delta += event.text;
      else if (event.type === 'finish') finishReason = event.reason;
      else if (event.type === 'usage') usage = event.usage;
      else if (event.type === 'signature') signed = true;
      else if (event.type === 'end') ended = true;
      else if (event.type === 'error') {
        if (delta !== '') listener.onText(delta);
        return { kind: 'failed', status: null, problem: problemFromStream(event.message) };
      }
    }
    if (delta !== '') listener.onText(delta);
  }
  if (!signed && !ended) return { kind: 'failed', status: null, problem: CUT_OFF };
  return { kind: 'complete', bytes: concatBytes(parts, size), usage, finishReason };
}

function concatBytes(parts: readonly Uint8Array[], size: number): Uint8Array {
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

type ChatEvent =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'finish'; readonly reason: string }
  | { readonly type: 'usage'; readonly usage: TokenUsage }
  | { readonly type: 'signature' }
  | { readonly type: 'error'; readonly message: string }
  | { readonly type: 'end' }
  /** Event without a fact for the page. */
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

/** Incremental parser for server-sent events (WHATWG HTML) with LF line ends. Ignores comments. */
export class SseReader {
  readonly #decoder = new TextDecoder();
  #rest = '';

  /** Adds received bytes. Returns the data of each event that is now complete. */
  read(bytes: Uint8Array): string[] {
    this.#rest += this.#decoder.decode(bytes, { stream: true });
    const blocks = this.#rest.split('\n\n');
    this.#rest = blocks.pop() ?? '';
    return blocks.flatMap((block) => dataOf(block));
  }
}

function dataOf(block: string): string[] {
  const lines = block.split('\n').flatMap((line) => {
    const [, data] = /^data: ?(.*)$/.exec(line) ?? [];
    return data === undefined ? [] : [data];
  });
  return lines.length === 0 ? [] : [lines.join('\n')];
}
