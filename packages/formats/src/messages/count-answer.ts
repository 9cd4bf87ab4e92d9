/** The response to a token counting request: `{input_tokens}`, known from the start event. */
import type { AnswerFormat, PlainRenderer } from '../format.js';
import type { OutputEvent } from '../output-event.js';

export const countAnswer: AnswerFormat = {
  idPrefix: 'count_',
  stream: neverStreamed,
  plain: () => new CountRenderer(),
  signatureEvent: neverStreamed,
  streamError: neverStreamed,
};

class CountRenderer implements PlainRenderer {
  #promptTokens: number | null = null;

  add(...events: readonly OutputEvent[]): void {
    for (const event of events) {
      if (event.type === 'start') this.#promptTokens = event.promptTokens;
      else if (event.type === 'finish') this.#promptTokens = event.usage.prompt_tokens;
    }
  }

  body(): string {
    if (this.#promptTokens === null) throw new Error('the prompt has not been counted');
    return JSON.stringify({ input_tokens: this.#promptTokens });
  }
}

/** `facts.stream` is always false for a count. */
function neverStreamed(): never {
  throw new Error('a token count is never streamed');
}
