/**
 * Decodes one stream. The next token is asked for before the present one is turned into text, so that JavaScript works
 * while the model does. Stops exactly at the token limit, never shifts the context, and looks at its control after every
 * token and every part of the prompt.
 */
import type { LlamaContextSequence, Token } from 'node-llama-cpp';
import type { Outbox } from './outbox.js';
import type { SamplingOptions } from './sampling.js';
import type { StreamControl } from './stream.js';
import type { TextAssembler } from './token-text.js';

/** Tokens of a prompt that are decoded in one go; a cancelled stream ends at the latest after this many. */
const PROMPT_PART_TOKENS = 256;

const NO_METADATA = {};

export interface Decoding {
  readonly sequence: LlamaContextSequence;
  /** What is left of the prompt to decode; not empty. */
  readonly prompt: readonly Token[];
  readonly limit: number;
  readonly sampling: SamplingOptions;
  readonly text: TextAssembler;
  readonly control: StreamControl;
  readonly outbox: Outbox;
}

export type Decoded = { readonly reason: 'stop' | 'length' | 'cancelled'; readonly tokens: number };

export async function decode({ sequence, prompt, limit, sampling, text, control, outbox }: Decoding): Promise<Decoded> {
  const { job } = control;
  let from = 0;
  for (; prompt.length - from > PROMPT_PART_TOKENS; from += PROMPT_PART_TOKENS) {
    if (control.cancelled) return { reason: 'cancelled', tokens: 0 };
    await sequence.evaluateWithoutGeneratingNewTokens(prompt.slice(from, from + PROMPT_PART_TOKENS));
  }
  if (control.cancelled) return { reason: 'cancelled', tokens: 0 };

  const { options, generated } = sampling;
  const tokens = sequence.evaluateWithMetadata(prompt.slice(from), NO_METADATA, options);
  let count = 0;
  let silent = 0;
  let next = tokens.next();
  try {
    for (;;) {
      const step = await next;
      if (control.cancelled) return { reason: 'cancelled', tokens: count };
      if (step.done === true) return finish('stop');
      const { token } = step.value;
      count += 1;
      generated?.push(token);
      const full = control.paused || count === limit ? null : outbox.ready();
      const goOn = count < limit && !control.paused && full === null;
      if (goOn) next = tokens.next();
      const piece = text.push(token);
      silent += 1;
      if (piece !== '') {
        outbox.piece(job, silent, piece);
        silent = 0;
      }
      if (goOn) continue;
      if (count === limit) return finish('length');
      if (full !== null) await full;
      if (control.paused) await control.released();
      if (control.cancelled) return { reason: 'cancelled', tokens: count };
      next = tokens.next();
    }
  } finally {
    await tokens.return();
  }

  function finish(reason: 'stop' | 'length'): Decoded {
    const rest = text.end();
    if (silent > 0 || rest !== '') outbox.piece(job, silent, rest);
    return { reason, tokens: count };
  }
}
