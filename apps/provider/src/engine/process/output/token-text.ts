/**
 * `Vocabulary` gives the bytes of each token; `TextAssembler` joins them to the text of one stream.
 *
 * Incomplete characters are withheld. Invalid bytes become U+FFFD, and so does NUL, which clients could not send back in a request.
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
  readonly piece: Uint8Array;
  /** `piece` with U+FFFD in place of NUL. */
  readonly bytes: Uint8Array;
  /** The bytes as text. Null if they are not valid UTF-8 by themselves, as in a part of a character. */
  readonly text: string | null;
}

const NUL = 0;
const encoder = new TextEncoder();
const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const REPLACEMENT = encoder.encode('\ufffd');
const NO_TEXT = plainTokenText('');

/** The vocabulary of a model file, and llama.cpp's detokeniser for vocabularies that this file cannot read. */
export interface VocabularySource {
  /** Texts by token id. */
  readonly tokens: readonly string[];
  /** Token types by token id; may be empty. */
  readonly types: readonly number[];
  /** `tokenizer.ggml.model`: `gpt2` for byte-level BPE, `llama` and `t5` for SentencePiece. */
  readonly kind: string;
  readonly detokenize: (token: Token) => string;
}

export class Vocabulary {
  readonly #entryByToken: (TokenText | undefined)[] = [];

  /** @param printed Texts, such as think tags, whose control tokens have text. */
  constructor(
    private readonly source: VocabularySource,
    private readonly printed: readonly string[],
  ) {}

  /** Texts that llama.cpp's tokenizer can parse as control tokens. */
  controlTexts(): string[] {
    const { tokens, types } = this.source;
    return tokens.filter((text, token) => text !== '' && (types[token] === CONTROL || types[token] === UNKNOWN));
  }

  isTokenId(token: number): boolean {
    return Number.isInteger(token) && token >= 0 && token < this.source.tokens.length;
  }

  hasToken(text: string): boolean {
    return this.source.tokens.includes(text);
  }

  /** Bytes and text of a token. */
  entry(token: Token): TokenText {
    let entry = this.#entryByToken[token];
    if (entry === undefined) {
      entry = this.#read(token);
      this.#entryByToken[token] = entry;
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
    if (raw === undefined) return NO_TEXT;
    switch (types[token]) {
      case CONTROL:
        return this.printed.some((text) => text.includes(raw)) ? plainTokenText(raw) : NO_TEXT;
      case UNKNOWN:
      case UNUSED:
        return NO_TEXT;
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

export interface StreamText {
  /** Text that this token completes; '' while a character is incomplete. */
  push(token: Token): string;
  /** U+FFFD for an incomplete character at the end, else ''. */
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
