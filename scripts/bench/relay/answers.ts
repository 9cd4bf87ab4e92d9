/** What both sides of the relay bench answer: the same bytes, shaped as a chat completion. */

/** Tokens of one streamed answer. */
export const STREAM_TOKENS = 256;

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

/** The events of a streamed answer, one per token, without its end. */
export function streamTokens(): string[] {
  return Array.from({ length: STREAM_TOKENS }, (_, index) => {
    const choices = [{ index: 0, delta: { content: ` word${index}` }, logprobs: null, finish_reason: null }];
    return `data: ${JSON.stringify({ ...envelope, object: 'chat.completion.chunk', choices })}\n\n`;
  });
}
