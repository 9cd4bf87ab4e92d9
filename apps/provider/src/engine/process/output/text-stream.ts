/** `TextStream`: state of one generation in the engine process. Accepting a token is fast; its text is written during the next batch. */
import type { TokenLogprob } from '@inference/formats';
import type { Token } from 'node-llama-cpp';
import type { Ended } from '../../messages.js';
import type { MediaChunk } from '../decoding/media-span.js';
import type { NativeSampler } from '../native.js';
import type { Outbox } from '../outbox.js';
import { GrammarText } from './grammar-text.js';
import { forcedLogprob, tokenLogprob } from './logprobs.js';
import type { TextAssembler, Vocabulary } from './token-text.js';

/** The daemon's control of one running stream: cancel, pause, resume. */
export class StreamControl {
  /** Called on cancel and resume, which may wake the decoder. Set by the decoder. */
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
  readonly scope: string | null;
  /** Whether the same request must give the same text. */
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
  readonly onEnd: () => void;
  readonly outbox: Outbox;
}

type Logprobs = ReadonlyMap<Token, number>;

export class TextStream {
  readonly #grammarText: GrammarText | null;
  #count = 0;
  #unsentTokens = 0;
  #logprobs: TokenLogprob[] = [];
  #isOver = false;

  constructor(readonly options: StreamOptions) {
    this.#grammarText = options.text instanceof GrammarText ? options.text : null;
  }

  /** Number of tokens that may still be generated. */
  get remaining(): number {
    return this.options.limit - this.#count;
  }

  /** The engine has begun with the prompt, of which `cachedTokens` were cached. */
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
   * Accepts a sampled token. The stream continues if `more`. The caller then calls `write` once per token, in order.
   *
   * @throws An error for an impossible token, after which the decoder ends the stream.
   */
  take(token: number, logprobs: Logprobs | null): { readonly more: boolean; readonly write: () => void } {
    if (token === -1) throw new Error('nothing could be sampled');
    const grammarText = this.#grammarText;
    const { limit, isEnd } = this.options;
    const next = token as Token;
    if (isEnd(next)) return { more: false, write: () => this.#finish('stop') };
    if (grammarText !== null && !grammarText.take(next, limit - this.#count - 1)) {
      return { more: false, write: () => this.#close(grammarText) };
    }
    this.#count += 1;
    if (grammarText !== null) {
      // Read now: when `write` runs, the grammar has already accepted the next token.
      const text = grammarText.push();
      const reason = grammarText.reasonAtLimit;
      const more = !grammarText.isComplete && this.#count < limit;
      return { more, write: () => this.#write(next, text, logprobs, more ? null : reason) };
    }
    const more = this.#count < limit;
    return { more, write: () => this.#write(next, this.options.text.push(next), logprobs, more ? null : 'length') };
  }

  /** Reports the end, once, and frees the sampler. Called directly on failure or cancellation. */
  end(ended: Ended): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.options.sampler.dispose();
    this.options.outbox.ended(ended);
    this.options.onEnd();
  }

  #write(token: Token, own: string, values: Logprobs | null, last: 'stop' | 'length' | null): void {
    const { logprobs } = this.options;
    // An incomplete character left by the last token belongs to that token.
    const text = last === null ? own : own + this.options.text.end();
    this.#unsentTokens += 1;
    if (logprobs !== null && values !== null) {
      this.#logprobs.push(tokenLogprob(logprobs.vocabulary, token, text, values, logprobs.alternatives));
    }
    if (text !== '') this.#send(text);
    if (last !== null) this.#finish(last);
  }

  /** Writes the forced tokens that complete the grammar. */
  #close(grammarText: GrammarText): void {
    const { text, tokens, reason } = grammarText.closing();
    const { logprobs } = this.options;
    if (logprobs !== null) {
      let rest = text;
      for (const [index, token] of tokens.entries()) {
        const own = index === tokens.length - 1 ? rest : new TextDecoder().decode(logprobs.vocabulary.entry(token).bytes);
        this.#logprobs.push(forcedLogprob(logprobs.vocabulary, token, own));
        rest = rest.slice(own.length);
      }
    }
    this.#count += tokens.length;
    this.#unsentTokens += tokens.length;
    this.#send(text);
    this.#finish(reason);
  }

  #finish(reason: 'stop' | 'length'): void {
    const rest = this.options.text.end();
    const last = this.#logprobs.at(-1);
    if (last !== undefined) this.#logprobs[this.#logprobs.length - 1] = { ...last, token: rest };
    if (this.#unsentTokens > 0 || rest !== '') this.#send(rest);
    this.end({ job: this.options.control.job, kind: 'finished', reason, completionTokens: this.#count });
  }

  #send(text: string): void {
    const { outbox, control, logprobs } = this.options;
    outbox.piece(control.job, this.#unsentTokens, text, logprobs === null ? undefined : this.#logprobs);
    this.#unsentTokens = 0;
    this.#logprobs = [];
  }
}
