/**
 * Decodes one stream. The next token is asked for as soon as the other streams have theirs, and text is made while the
 * model works. Stops exactly at the token limit, never shifts the context, and looks at its control after every token
 * and every part of the prompt.
 */
import type { LlamaContextSequence, Token } from 'node-llama-cpp';
import type { Outbox } from './outbox.js';
import type { Rounds } from './rounds.js';
import type { SamplingOptions } from './sampling.js';
import type { StreamControl } from './stream.js';
import type { TextAssembler } from './token-text.js';

const NO_METADATA = {};

export interface Decoding {
  readonly sequence: LlamaContextSequence;
  /** Not empty. */
  readonly prompt: readonly Token[];
  readonly limit: number;
  readonly sampling: SamplingOptions;
  readonly text: TextAssembler;
  readonly control: StreamControl;
  readonly rounds: Rounds;
  readonly outbox: Outbox;
}

export type Decoded = { readonly reason: 'stop' | 'length' | 'cancelled'; readonly tokens: number };

export async function decode(decoding: Decoding): Promise<Decoded> {
  const { rounds } = decoding;
  await rounds.enter();
  try {
    const rest = await decodePrompt(decoding);
    return rest === null ? { reason: 'cancelled', tokens: 0 } : await decodeAnswer(decoding, rest);
  } finally {
    rounds.leave();
  }
}

/** Decodes the prompt up to a last part, which comes back. Null when the stream was cancelled meanwhile. */
async function decodePrompt({ sequence, prompt, control, rounds }: Decoding): Promise<Token[] | null> {
  rounds.prefilling += 1;
  try {
    let from = 0;
    for (;;) {
      if (control.cancelled) return null;
      const part = rounds.partTokens();
      if (prompt.length - from <= part) return prompt.slice(from);
      await sequence.evaluateWithoutGeneratingNewTokens(prompt.slice(from, from + part));
      from += part;
      await rounds.again();
    }
  } finally {
    rounds.prefilling -= 1;
  }
}

async function decodeAnswer({ sequence, limit, sampling, text, control, rounds, outbox }: Decoding, prompt: Token[]): Promise<Decoded> {
  const { job } = control;
  const { options, generated } = sampling;
  const tokens = sequence.evaluateWithMetadata(prompt, NO_METADATA, options);
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
      if (count === limit) {
        write(token);
        return finish('length');
      }
      const full = control.paused ? null : outbox.ready();
      if (control.paused || full !== null) {
        write(token);
        await standAside(full);
      } else {
        const gate = rounds.again();
        if (gate === null) {
          next = tokens.next();
          write(token);
          continue;
        }
        write(token);
        await gate;
      }
      if (control.cancelled) return { reason: 'cancelled', tokens: count };
      next = tokens.next();
    }
  } finally {
    await tokens.return();
  }

  /** Waits outside the rounds, so that the other streams go on. */
  async function standAside(full: Promise<void> | null): Promise<void> {
    rounds.leave();
    if (full !== null) await full;
    if (control.paused) await control.released();
    await rounds.enter();
  }

  function write(token: Token): void {
    const piece = text.push(token);
    silent += 1;
    if (piece === '') return;
    outbox.piece(job, silent, piece);
    silent = 0;
  }

  function finish(reason: 'stop' | 'length'): Decoded {
    const rest = text.end();
    if (silent > 0 || rest !== '') outbox.piece(job, silent, rest);
    return { reason, tokens: count };
  }
}
