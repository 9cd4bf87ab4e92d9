/** Requests and responses of the relay bench: chat completions, with the same bytes at all compared relays. */

/** Tokens of one unpaced stream. */
export const STREAM_TOKENS = 256;
export const STREAM_END = 'data: [DONE]\n\n';

const chunkMembers = { id: 'chatcmpl-bench', created: 1_700_000_000, model: 'bench' };

export const PLAIN_ANSWER = JSON.stringify({
  ...chunkMembers,
  object: 'chat.completion',
  choices: [
    {
      index: 0,
      message: { role: 'assistant', content: 'The capital of France is Paris.', refusal: null },
      logprobs: null,
      finish_reason: 'stop',
    },
  ],
  usage: { prompt_tokens: 12, completion_tokens: 8, total_tokens: 20 },
});

function tokenEvent(content: string): string {
  const choices = [{ index: 0, delta: { content }, logprobs: null, finish_reason: null }];
  return `data: ${JSON.stringify({ ...chunkMembers, object: 'chat.completion.chunk', choices })}\n\n`;
}

/** Events of a streamed response, one per token, without the end. */
export function streamTokens(): string[] {
  return Array.from({ length: STREAM_TOKENS }, (_, index) => tokenEvent(` word${index}`));
}

/** Pace of a stream: token count and interval in milliseconds. */
export interface Pace {
  readonly tokens: number;
  readonly everyMs: number;
}

/** Request body. The prompt contains the pace, if any, which the bench's provider reads with `paceOf`. */
export function requestBody(stream: boolean, pace: Pace | null = null, model = 'bench'): string {
  const content = pace === null ? 'What is the capital of France?' : `Pace: ${pace.tokens} tokens, one every ${pace.everyMs} ms.`;
  return JSON.stringify({ model, messages: [{ role: 'user', content }], stream, max_tokens: 1024 });
}

/** Null: the request asks for no pace, so everything is sent at once. */
export function paceOf(body: Buffer): Pace | null {
  if (!body.includes('Pace: ')) return null;
  const [, tokens, everyMs] = /Pace: (\d+) tokens, one every (\d+) ms/.exec(body.toString('utf8')) ?? [];
  return { tokens: Number(tokens), everyMs: Number(everyMs) };
}

/** Microseconds of the monotonic clock, shared by all processes of a machine. */
export function microseconds(): number {
  return Number(process.hrtime.bigint() / 1000n);
}

/** Token event that contains its creation time, for latency measurements. */
export function timedToken(): string {
  return tokenEvent(`at ${microseconds()}.`);
}

/** Creation times of the tokens in a piece of a stream, in microseconds. */
export function tokenTimes(text: string): number[] {
  return Array.from(text.matchAll(/at (\d+)\./g), ([, time]) => Number(time));
}

/** Calls `token` at the given pace, then `end`. */
export function emitAtPace({ tokens, everyMs }: Pace, token: () => void, end: () => void): void {
  let left = tokens - 1;
  token();
  const timer = setInterval(() => {
    if (left-- > 0) return token();
    clearInterval(timer);
    end();
  }, everyMs);
}
