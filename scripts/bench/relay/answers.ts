/** What all sides of the relay bench answer: the same bytes, shaped as a chat completion; and the requests that ask for them. */

/** Tokens of one streamed answer that comes at once. */
export const STREAM_TOKENS = 256;
/** What every stream ends with. */
export const STREAM_END = 'data: [DONE]\n\n';

const envelope = { id: 'chatcmpl-bench', created: 1_700_000_000, model: 'bench' };

/** Body of a plain answer. */
export const PLAIN_ANSWER = JSON.stringify({
  ...envelope,
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

/** The event of one token. */
export function tokenEvent(content: string): string {
  const choices = [{ index: 0, delta: { content }, logprobs: null, finish_reason: null }];
  return `data: ${JSON.stringify({ ...envelope, object: 'chat.completion.chunk', choices })}\n\n`;
}

/** The events of a streamed answer, one per token, without its end. */
export function streamTokens(): string[] {
  return Array.from({ length: STREAM_TOKENS }, (_, index) => tokenEvent(` word${index}`));
}

/** How a stream is to come: so many tokens, one every so many milliseconds. */
export interface Pace {
  readonly tokens: number;
  readonly everyMs: number;
}

/** Body of a request. The pace stands in the prompt, where only those who answer read it. */
export function requestBody(stream: boolean, pace: Pace | null = null): string {
  const content = pace === null ? 'What is the capital of France?' : `Pace: ${pace.tokens} tokens, one every ${pace.everyMs} ms.`;
  return JSON.stringify({ model: 'bench', messages: [{ role: 'user', content }], stream, max_tokens: 1024 });
}

/** The pace that a body asks for; null: all at once. */
export function paceOf(body: Buffer): Pace | null {
  if (!body.includes('Pace: ')) return null;
  const [, tokens, everyMs] = /Pace: (\d+) tokens, one every (\d+) ms/.exec(body.toString('utf8')) ?? [];
  return { tokens: Number(tokens), everyMs: Number(everyMs) };
}

/** Microseconds of the monotonic clock, which all processes of a machine share. */
export function microseconds(): number {
  return Number(process.hrtime.bigint() / 1000n);
}

/** A token that says when it was made. */
export function timedToken(): string {
  return tokenEvent(`at ${microseconds()}.`);
}

/** When the tokens in a piece of a stream were made. */
export function tokenTimes(text: string): number[] {
  return Array.from(text.matchAll(/at (\d+)\./g), ([, time]) => Number(time));
}

/** Calls `token` as often and at the times that a pace says, and then `end`. */
export function keepPace({ tokens, everyMs }: Pace, token: () => void, end: () => void): void {
  let left = tokens - 1;
  token();
  const timer = setInterval(() => {
    if (left-- > 0) return token();
    clearInterval(timer);
    end();
  }, everyMs);
}
