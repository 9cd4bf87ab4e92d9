/**
 * `Vocabulary` and `TextAssembler` convert tokens to text. Incomplete characters are withheld. Invalid bytes and NUL, which requests
 * must not contain, become U+FFFD.
 *
 * Control tokens have no text, except for think tags.
 */
import type { Token } from 'node-llama-cpp';

/** Token types of the GGUF vocabulary (`tokenizer.ggml.token_type`). */
const UNKNOWN = 2;
const CONTROL = 3;
const USER_DEFINED = 4;
const UNUSED = 5;
const BYTE = 6;

interface TokenText {
  /** Bytes in the vocabulary. */
  readonly piece: Uint8Array;
  /** Bytes of the text: U+FFFD in place of NUL. */
  readonly bytes: Uint8Array;
  /** Text, if the bytes of this token are complete UTF-8. Null if a character continues in another token. */
  readonly text: string | null;
}

const NUL = 0;
const encoder = new TextEncoder();
const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const REPLACEMENT = encoder.encode('\ufffd');
const SILENT = plainTokenText('');

/** The vocabulary of a model file, and the library's detokeniser for other vocabulary types. */
export interface VocabularySource {
  readonly tokens: readonly string[];
  readonly types: readonly number[];
  /** `tokenizer.ggml.model`: `gpt2` for byte-level BPE, `llama` and `t5` for SentencePiece. */
  readonly kind: string;
  readonly detokenize: (token: Token) => string;
}

export class Vocabulary {
  readonly #entries: (TokenText | undefined)[] = [];
  /** @param printed Texts whose control tokens are printed. */
  constructor(
    private readonly source: VocabularySource,
    private readonly printed: readonly string[],
  ) {}

  /** Texts parsed by llama.cpp as control tokens. */
  controlTexts(): string[] {
    const { tokens, types } = this.source;
    return tokens.filter((text, token) => text !== '' && (types[token] === CONTROL || types[token] === UNKNOWN));
  }

  /** Whether the number is a valid token id. */
  holds(token: number): boolean {
    return Number.isInteger(token) && token >= 0 && token < this.source.tokens.length;
  }

  has(text: string): boolean {
    return this.source.tokens.includes(text);
  }

  entry(token: Token): TokenText {
    let entry = this.#entries[token];
    if (entry === undefined) {
      entry = this.#read(token);
      this.#entries[token] = entry;
    }
    return entry;
  }

  /** Bytes of a token as llama.cpp's grammars read them, control tokens included. */
  pieceBytes(token: Token): Uint8Array {
    const { tokens, types } = this.source;
    const type = types[token];
    return type === CONTROL || type === UNKNOWN ? encoder.encode(tokens[token] ?? '') : this.entry(token).piece;
  }

  #read(token: Token): TokenText {
    const { tokens, types, kind } = this.source;
    const raw = tokens[token];
    if (raw === undefined) return SILENT;
    switch (types[token]) {
      case CONTROL:
        return this.printed.some((text) => text.includes(raw)) ? plainTokenText(raw) : SILENT;
      case UNKNOWN:
      case UNUSED:
        return SILENT;
      case USER_DEFINED:
        return plainTokenText(raw);
      case BYTE:
        return fromBytes(Uint8Array.of(Number.parseInt(raw.slice(3, 5), 16)));
      default:
        if (kind === 'gpt2') return fromBytes(byteLevelBytes(raw));
        if (kind === 'llama' || kind === 't5') return plainTokenText(raw.replaceAll('\u2581', ' '));
        return plainTokenText(this.source.detokenize(token));
    }
  }
}

/** Assembles the text of a stream from its tokens. */
export interface StreamText {
  /** Text completed by this token; '' while a character is incomplete. */
  push(token: Token): string;
  /** Rest of an incomplete character: U+FFFD or nothing. */
  end(): string;
}

export class TextAssembler implements StreamText {
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  #isPending = false;

  constructor(private readonly vocabulary: Vocabulary) {}

  push(token: Token): string {
    const { text, bytes } = this.vocabulary.entry(token);
    if (!this.#isPending && text !== null) return text;
    if (bytes.length === 0) return '';
    this.#isPending = text === null;
    return this.#decoder.decode(bytes, { stream: true });
  }

  end(): string {
    return this.#isPending ? this.#decoder.decode() : '';
  }
}

function plainTokenText(text: string): TokenText {
  return fromBytes(encoder.encode(text));
}

function fromBytes(piece: Uint8Array): TokenText {
  // In UTF-8, a zero byte is NUL and never part of another character.
  const bytes = piece.includes(NUL) ? Uint8Array.from([...piece].flatMap((byte) => (byte === NUL ? [...REPLACEMENT] : [byte]))) : piece;
  try {
    return { piece, bytes, text: strict.decode(bytes) };
  } catch {
    return { piece, bytes, text: null };
  }
}

/** Reverses GPT-2's bytes_to_unicode: byte-level BPE writes each byte as one printable character. */
function byteLevelBytes(raw: string): Uint8Array {
  const bytes: number[] = [];
  for (const character of raw) {
    const byte = BYTE_OF_CHARACTER.get(character);
    if (byte === undefined) bytes.push(...encoder.encode(character));
    else bytes.push(byte);
  }
  return Uint8Array.from(bytes);
}

const BYTE_OF_CHARACTER: ReadonlyMap<string, number> = byteLevelAlphabet();

function byteLevelAlphabet(): Map<string, number> {
  const alphabet = new Map<string, number>();
  let shifted = 256;
  for (let byte = 0; byte < 256; byte++) {
    const printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    alphabet.set(String.fromCodePoint(printable ? byte : shifted++), byte);
  }
  return alphabet;
}
