/**
 * `GrammarText` follows the text of a stream that a grammar restricts.
 *
 * When only the shortest completion still fits the token limit, the caller ends the stream with `closing()`.
 */
import { type Grammar, GrammarMatcher, GrammarTooLarge, type MatcherState, stateKey } from '@inference/json-schema-grammar/grammar';
import type { Token } from 'node-llama-cpp';

/** Texts nested deeper than this are completed at once, because client parsers limit the depth. */
const MAX_DEPTH = 600;

/** Characters that `mayExceedPositions` looks ahead, because llama.cpp adds the grammar positions of all characters of a token at once. */
const STEPS_AHEAD = 80;

interface GrammarTextModel {
  /** Bytes of a token as the grammar reads them. */
  pieceBytes(token: Token): Uint8Array;
  tokenize(text: string): Token[];
}

export class GrammarText {
  readonly #matcher: GrammarMatcher;
  readonly #decoder = new LenientUtf8Decoder();
  readonly #permitsFreeText: boolean;
  readonly #fitsLimit: boolean;
  #state: MatcherState;
  #lastText = '';
  /** Results of `#mayExceedPositions`, because states recur. */
  readonly #exceedsByState = new Map<string, boolean>();

  /**
   * @param limit Maximum tokens. If not even the shortest text fits, the stream is cut off at the limit.
   * @throws {@link GrammarTooLarge}
   */
  constructor(
    private readonly model: GrammarTextModel,
    { grammar, permitsFreeText = false }: { readonly grammar: Grammar; readonly permitsFreeText?: boolean | undefined },
    limit: number,
  ) {
    this.#matcher = new GrammarMatcher(grammar);
    this.#permitsFreeText = permitsFreeText;
    this.#state = this.#matcher.start();
    if (this.#mayExceedPositions(this.#state)) throw new GrammarTooLarge();
    this.#fitsLimit = this.#canCompleteWithin(this.#state, limit);
  }

  /** Whether no further text may follow. */
  get isComplete(): boolean {
    return this.#state.length === 1 && this.#state[0] === null;
  }

  /** Finish reason if the text reaches the token limit now. */
  get reasonAtLimit(): 'stop' | 'length' {
    const mayEnd = this.#state.includes(null) && !this.#decoder.isInCharacter;
    return this.isComplete || (mayEnd && !this.#permitsFreeText) ? 'stop' : 'length';
  }

  /** Accepts a token. Returns false if the text could then not be completed within the limits; throws for a token outside the grammar. */
  take(token: Token, remainingTokens: number): boolean {
    const codes = this.#decoder.read(this.model.pieceBytes(token));
    let next: MatcherState | null = this.#state;
    for (const code of codes.points) if (next !== null) next = this.#matcher.tryStep(next, code);
    if (next === null) return false;
    if (next.length === 0) throw new Error('a token does not fit the grammar');
    if (this.#mayExceedPositions(next)) return false;
    if (this.#fitsLimit && (!this.#canCompleteWithin(next, remainingTokens) || this.#matcher.depth(next) > MAX_DEPTH)) return false;
    this.#state = next;
    this.#decoder.commit(codes);
    this.#lastText = String.fromCodePoint(...codes.points);
    return true;
  }

  /** Text of the last accepted token. */
  get lastText(): string {
    return this.#lastText;
  }

  /** Always empty, because an incomplete character matches no grammar. */
  end(): string {
    return '';
  }

  /** The shortest completion of the text so far. Where the grammar permits free text, the reason is `length`. */
  closing(): { readonly text: string; readonly tokens: readonly Token[]; readonly reason: 'stop' | 'length' } {
    const text = this.#matcher.rest(this.#state);
    return { text, tokens: this.model.tokenize(text), reason: this.#permitsFreeText ? 'length' : 'stop' };
  }

  /** Whether the next characters may need more grammar positions than llama.cpp can handle. */
  #mayExceedPositions(state: MatcherState): boolean {
    const key = stateKey(state);
    let exceeds = this.#exceedsByState.get(key);
    if (exceeds === undefined) {
      exceeds = this.#matcher.mayExceedPositions(state, STEPS_AHEAD);
      this.#exceedsByState.set(key, exceeds);
    }
    return exceeds;
  }

  /** Whether `tokens` tokens can complete the text. A token has at least one byte, so short completions need no count. */
  #canCompleteWithin(state: MatcherState, tokens: number): boolean {
    if (this.#matcher.restBytes(state) <= tokens) return true;
    return this.model.tokenize(this.#matcher.rest(state)).length <= tokens;
  }
}

interface DecodedBytes {
  /** Complete characters. */
  readonly points: readonly number[];
  /** Bits so far of an incomplete character, and its missing bytes. */
  readonly value: number;
  readonly missing: number;
}

/** Decodes UTF-8 exactly as llama.cpp's grammars, which accept some overlong forms. `read` changes nothing until `commit`. */
class LenientUtf8Decoder {
  #value = 0;
  #missing = 0;

  get isInCharacter(): boolean {
    return this.#missing > 0;
  }

  read(bytes: Uint8Array): DecodedBytes {
    const points: number[] = [];
    let value = this.#value;
    let missing = this.#missing;
    for (const byte of bytes) {
      if (missing > 0) {
        value = (value << 6) | (byte & 0x3f);
        missing -= 1;
      } else {
        missing = byte < 0xc0 ? 0 : byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3;
        value = byte & (missing === 0 ? 0x7f : (1 << (6 - missing)) - 1);
      }
      if (missing === 0) points.push(value);
    }
    return { points, value, missing };
  }

  commit({ value, missing }: DecodedBytes): void {
    this.#value = value;
    this.#missing = missing;
  }
}
