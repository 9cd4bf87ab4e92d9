/** `VisionVocabulary`: the tokenizer and vocabulary of a vision model, read through llama.cpp's C API. */
import type { Token } from 'node-llama-cpp';
import type { VocabularySource } from '../process/output/token-text.js';
import type { PromptModel } from '../process/prompt/chat-prompt.js';
import type { LlamaLibrary, Pointer } from './llama-library.js';

/** `LLAMA_VOCAB_TYPE_BPE` in `llama.h`. */
const BYTE_PAIR = 2;
const MAX_METADATA_BYTES = 256;
/** Bits of `llama_token_attr`, and the GGUF token type of each: unknown, control, user-defined, unused, byte. */
const TYPES: readonly (readonly [attribute: number, type: number])[] = [
  [1 << 0, 2],
  [1 << 3, 3],
  [1 << 4, 4],
  [1 << 1, 5],
  [1 << 5, 6],
];
/** GGUF token type of tokens without these attributes. */
const NORMAL = 1;

export class VisionVocabulary {
  readonly size: number;

  constructor(
    private readonly library: LlamaLibrary,
    readonly pointer: Pointer,
  ) {
    this.size = library.llama_vocab_n_tokens(pointer) as number;
  }

  get isBytePair(): boolean {
    return this.library.llama_vocab_type(this.pointer) === BYTE_PAIR;
  }

  isEnd(token: number): boolean {
    return this.library.llama_vocab_is_eog(this.pointer, token) as boolean;
  }

  get tokens(): PromptModel['tokens'] {
    const { library, pointer } = this;
    const bos = library.llama_vocab_bos(pointer) as number;
    return {
      bos: tokenOrNull(bos),
      bosString: this.#text(bos),
      eosString: this.#text(library.llama_vocab_eos(pointer) as number),
      infill: {
        prefix: tokenOrNull(library.llama_vocab_fim_pre(pointer) as number),
        suffix: tokenOrNull(library.llama_vocab_fim_suf(pointer) as number),
        middle: tokenOrNull(library.llama_vocab_fim_mid(pointer) as number),
      },
      shouldPrependBosToken: library.llama_vocab_get_add_bos(pointer) as boolean,
    };
  }

  /** @param special Whether the texts of control tokens become control tokens. */
  tokenize(text: string, special: boolean): Token[] {
    if (text === '') return [];
    const bytes = Buffer.from(text, 'utf8');
    // Each token stands for at least one byte; some tokenizers add a space.
    const tokens = new Int32Array(bytes.length + 2);
    const count = this.library.llama_tokenize(this.pointer, bytes, bytes.length, tokens, tokens.length, false, special) as number;
    if (count < 0) throw new Error('llama.cpp could not tokenize a text');
    return [...tokens.subarray(0, count)] as Token[];
  }

  source(library: LlamaLibrary, model: Pointer): VocabularySource {
    const ids = Array.from({ length: this.size }, (_, token) => token);
    const preceding = this.tokenize('a', false).at(-1) ?? 0;
    return {
      tokens: ids.map((token) => this.#text(token) ?? ''),
      types: ids.map((token) => this.#type(token)),
      kind: metadata(library, model, 'tokenizer.ggml.model'),
      // A token before the detokenised one, because llama.cpp strips the leading space of the first token.
      detokenize: (token) => this.#detokenize([preceding, token]).slice(this.#detokenize([preceding]).length),
    };
  }

  #text(token: number): string | null {
    return token < 0 ? null : (this.library.llama_vocab_get_text(this.pointer, token) as string);
  }

  #type(token: number): number {
    const attributes = this.library.llama_vocab_get_attr(this.pointer, token) as number;
    return TYPES.find(([attribute]) => (attributes & attribute) !== 0)?.[1] ?? NORMAL;
  }

  #detokenize(tokens: readonly number[]): string {
    const text = Buffer.alloc(1024);
    const ids = Int32Array.from(tokens);
    const length = this.library.llama_detokenize(this.pointer, ids, ids.length, text, text.length, false, false) as number;
    return text.toString('utf8', 0, Math.max(0, length));
  }
}

/** llama.cpp returns a negative number for no token. */
function tokenOrNull(token: number): Token | null {
  return token < 0 ? null : (token as Token);
}

/** A text of the model file's metadata, cut off at `MAX_METADATA_BYTES`; '' if missing. */
function metadata(library: LlamaLibrary, model: Pointer, name: string): string {
  const text = Buffer.alloc(MAX_METADATA_BYTES);
  const length = library.llama_model_meta_val_str(model, name, text, text.length) as number;
  return text.toString('utf8', 0, Math.max(0, Math.min(length, MAX_METADATA_BYTES - 1)));
}
