/**
 * `TextStream`: one generation in the engine process, from sampled tokens to text in the outbox.
 *
 * Accepting a token is fast. Its text is written later, while the next batch is computed.
 */
import type { TokenLogprob } from '@inference/formats';
import type { Token } from 'node-llama-cpp';
import type { Ended } from '../../messages.js';
import type { MediaChunk } from '../decoding/media-span.js';
import type { NativeSampler } from '../native.js';
import type { Outbox } from '../outbox.js';
import { GrammarText } from './grammar-text.js';
import { forcedLogprob, tokenLogprob } from './logprobs.js';
import type { TextAssembler, Vocabulary } from './token-text.js';

/** The daemon's commands to one generation: cancel, pause, resume. */
export class StreamControl {
  /** Called on cancel and resume. Set by whatever the generation waits for: `ImageBudget`, then `Decoder`. */
  onChange: () => void = () => {};
  #isCancelled = false;
  #isPaused = false;

  constructor(readonly job: number) {}

  get cancelled(): boolean {
    return this.#isCancelled;
  }

  get paused(): boolean {
    return this.#isPaused;
  }

  cancel(): void {
    this.#isCancelled = true;
    this.#isPaused = false;
    this.onChange();
  }

  pause(): void {
    this.#isPaused = !this.#isCancelled;
  }

  resume(): void {
    this.#isPaused = false;
    this.onChange();
  }
}

export interface StreamOptions {
  readonly control: StreamControl;
  /** Prompt tokens, at least one. The last belongs to no image. */
  readonly prompt: readonly Token[];
  /** Images in the prompt, in order. */
  readonly media: readonly MediaChunk[];
  readonly startsInsideThinking: boolean;
  /** Cache scope. */
  readonly scope: string | null;
  /** Whether the same request must give the same text, because it has a seed. */
  readonly repeatable: boolean;
  /** Maximum generated tokens. */
  readonly limit: number;
  readonly sampler: NativeSampler;
  readonly text: TextAssembler | GrammarText;
  /** Null if no log probabilities are requested. */
  readonly logprobs: { readonly vocabulary: Vocabulary; readonly alternatives: number } | null;
  readonly isEnd: (token: Token) => boolean;
  /** Called when the last slice of the prompt is decoded. */
  readonly onPromptRead?: () => void;
  /** Called once, after the end is in the outbox. */
  readonly onEnd: () => void;
  readonly outbox: Outbox;
}

type LogprobByToken = ReadonlyMap<Token, number>;

interface TakenToken {
  /** Whether the stream continues. */
  readonly more: boolean;
  /** Writes the token's text, or the end. Must be called once per token, in order. */
  readonly write: () => void;
}

export class TextStream {
  #generatedTokens = 0;
  #unsentTokens = 0;
  #unsentLogprobs: TokenLogprob[] = [];
  #isOver = false;

  constructor(readonly options: StreamOptions) {}

  get remainingTokens(): number {
    return this.options.limit - this.#generatedTokens;
  }

  /** Reports the start. `cachedTokens` of the prompt were found in the KV cache. */
  begin(cachedTokens: number): void {
    const { control, prompt, startsInsideThinking, outbox } = this.options;
    outbox.started({
      job: control.job,
      promptTokens: prompt.length,
      ...(cachedTokens === 0 ? {} : { cachedTokens }),
      startsInsideThinking,
    });
  }

  /**
   * Accepts a sampled token.
   *
   * @throws An error if nothing could be sampled, or the token does not fit the grammar.
   */
  take(token: number, logprobs: LogprobByToken | null): TakenToken {
    if (token === -1) throw new Error('nothing could be sampled');
    const { limit, isEnd, text } = this.options;
    const next = token as Token;
    if (isEnd(next)) return { more: false, write: () => this.#finish('stop') };
    if (text instanceof GrammarText) return this.#takeInGrammar(text, next, logprobs);
    this.#generatedTokens += 1;
    const more = this.#generatedTokens < limit;
    return { more, write: () => this.#write(next, text.push(next), logprobs, more ? null : 'length') };
  }

  #takeInGrammar(text: GrammarText, token: Token, logprobs: LogprobByToken | null): TakenToken {
    if (!text.take(token, this.remainingTokens - 1)) return { more: false, write: () => this.#complete(text) };
    this.#generatedTokens += 1;
    // Read now, because the grammar may accept the next token before `write` runs.
    const { lastText, reasonAtLimit } = text;
    const more = !text.isComplete && this.remainingTokens > 0;
    return { more, write: () => this.#write(token, lastText, logprobs, more ? null : reasonAtLimit) };
  }

  /** Reports the end and frees the sampler. Later calls do nothing. Called from outside on failure or cancellation. */
  end(ended: Ended): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.options.sampler.dispose();
    this.options.outbox.ended(ended);
    this.options.onEnd();
  }

  /** Writes a token. With a finish reason, the token is the last one. */
  #write(token: Token, ownText: string, values: LogprobByToken | null, reason: 'stop' | 'length' | null): void {
    const { logprobs } = this.options;
    // The rest of an incomplete character belongs to the last token.
    const text = reason === null ? ownText : ownText + this.options.text.end();
    this.#unsentTokens += 1;
    if (logprobs !== null && values !== null) {
      this.#unsentLogprobs.push(tokenLogprob(logprobs.vocabulary, token, text, values, logprobs.alternatives));
    }
    if (text !== '') this.#send(text);
    if (reason !== null) this.#finish(reason);
  }

  /** Writes tokens that complete the grammar, and ends the stream. */
  #complete(grammarText: GrammarText): void {
    const { text, tokens, reason } = grammarText.closing();
    const { logprobs } = this.options;
    if (logprobs !== null) {
      let rest = text;
      for (const [index, token] of tokens.entries()) {
        const own = index === tokens.length - 1 ? rest : new TextDecoder().decode(logprobs.vocabulary.entry(token).bytes);
        this.#unsentLogprobs.push(forcedLogprob(logprobs.vocabulary, token, own));
        rest = rest.slice(own.length);
      }
    }
    this.#generatedTokens += tokens.length;
    this.#unsentTokens += tokens.length;
    this.#send(text);
    this.#finish(reason);
  }

  #finish(reason: 'stop' | 'length'): void {
    const rest = this.options.text.end();
    const last = this.#unsentLogprobs.at(-1);
    if (last !== undefined) this.#unsentLogprobs[this.#unsentLogprobs.length - 1] = { ...last, token: rest };
    if (this.#unsentTokens > 0 || rest !== '') this.#send(rest);
    this.end({ job: this.options.control.job, kind: 'finished', reason, completionTokens: this.#generatedTokens });
  }

  #send(text: string): void {
    const { outbox, control, logprobs } = this.options;
    outbox.piece(control.job, this.#unsentTokens, text, logprobs === null ? undefined : this.#unsentLogprobs);
    this.#unsentTokens = 0;
    this.#unsentLogprobs = [];
  }
}
