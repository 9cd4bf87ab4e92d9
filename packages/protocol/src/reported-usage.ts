/**
 * The usage that an answer itself reports to its client, read from its bytes as they come, and its agreement with the signed receipt.
 * The reader walks the JSON structure of the body or of each event. Memory is bounded: MAX_USAGES usage objects and one member name.
 * Coordinator and verifiers share it, so that both refuse the same answers.
 */
import type { Endpoint } from './ids.js';
import type { Receipt } from './statements/receipt.js';

/** A usage object, or a number of a token count, as the answer holds it. `isPartial`: it was written before the answer was. */
export interface ReportedUsage {
  readonly value: unknown;
  readonly isPartial: boolean;
}

/** `unreadable`: a usage is no JSON, is too long, or there are too many different ones. */
export type UsageReport = readonly ReportedUsage[] | 'unreadable';

/** Longest usage object, in bytes. */
const MAX_USAGE_BYTES = 4096;
/** Different usage objects of one answer. */
const MAX_USAGES = 8;
/** Longest member name that is compared, in bytes; every character of a known one may be written as an escape of six bytes. */
const MAX_NAME_BYTES = 6 * 'input_tokens'.length;

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const LF = 0x0a;
const SPACE = 0x20;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const DATA = [0x64, 0x61, 0x74, 0x61, COLON] as const;
const NAME_OF_USAGE = 'usage';

/** Reads the usage of one answer. Bytes may be split anywhere. */
export class UsageReader {
  /** Member of the root that holds a usage: `usage`, or the number of a token count. */
  readonly #member: string;
  /** Member of an event whose object holds a usage too; null: none. */
  readonly #container: string | null;
  readonly #isStream: boolean;
  readonly #usages = new Map<string, ReportedUsage>();
  #unreadable = false;

  // Of a stream: where in a line it is.
  /** Bytes of `data:` that the line begins with; -1: a line of another field; 5: inside its value. */
  #field: number;
  #lineIsEmpty = true;

  // Of one JSON text.
  /** The text is over or is no object. */
  #isDone = false;
  #depth = 0;
  #inString = false;
  #isEscaped = false;
  /** The containers at depth 1 and 2 are objects that may hold a usage. */
  #isRootObject = false;
  #isInContainer = false;
  /** The next string is a member's name. */
  #expectsName = false;
  #name: number[] | null = null;
  /** The member whose value follows. */
  #member1 = '';
  #member2 = '';
  #capture: number[] | null = null;
  #captureDepth = 0;

  constructor(endpoint: Endpoint, stream: boolean) {
    this.#isStream = stream;
    this.#field = stream ? 0 : DATA.length;
    this.#member = endpoint === '/v1/messages/count_tokens' ? 'input_tokens' : NAME_OF_USAGE;
    this.#container = !stream ? null : endpoint === '/v1/messages' ? 'message' : endpoint === '/v1/responses' ? 'response' : null;
  }

  push(bytes: Uint8Array): void {
    if (this.#unreadable) return;
    const { length } = bytes;
    for (let index = 0; index < length; index++) {
      if (this.#isStream) {
        // JSON in an event stands on `data:` lines; nothing else of a stream is read.
        if (this.#field !== DATA.length || bytes[index] === LF) {
          this.#line(bytes[index] as number);
          continue;
        }
        if (this.#isDone) {
          const feed = bytes.indexOf(LF, index);
          if (feed === -1) return;
          index = feed - 1;
          continue;
        }
      } else if (this.#isDone) return;
      if (this.#inString && !this.#isEscaped && this.#name === null && this.#capture === null) {
        // Texts are most of an answer, and none of it is kept.
        let byte = bytes[index] as number;
        while (byte !== QUOTE && byte !== BACKSLASH && byte !== LF && ++index < length) byte = bytes[index] as number;
        if (index === length) return;
        if (byte === LF) {
          if (this.#isStream) index--;
          continue;
        }
      }
      this.#byte(bytes[index] as number);
    }
  }

  /** What the answer reports, in the order in which it came. */
  end(): UsageReport {
    return this.#unreadable ? 'unreadable' : [...this.#usages.values()];
  }

  /** A byte of a stream outside of JSON. An event's `data:` lines are one text; a blank line ends the event. */
  #line(byte: number): void {
    if (byte === LF) {
      if (this.#lineIsEmpty) this.#reset();
      this.#lineIsEmpty = true;
      this.#field = 0;
      return;
    }
    this.#lineIsEmpty = false;
    if (this.#field >= 0) this.#field = byte === DATA[this.#field] ? this.#field + 1 : -1;
  }

  #reset(): void {
    this.#isDone = false;
    this.#depth = 0;
    this.#inString = false;
    this.#isEscaped = false;
    this.#isRootObject = false;
    this.#isInContainer = false;
    this.#expectsName = false;
    this.#name = null;
    this.#capture = null;
  }

  #byte(byte: number): void {
    if (this.#capture !== null && this.#captured(byte, this.#capture)) return;
    if (this.#inString) this.#inText(byte);
    else this.#structure(byte);
  }

  /** Adds the byte to a value; false: the value has ended before it. */
  #captured(byte: number, capture: number[]): boolean {
    if (!this.#inString && this.#depth === this.#captureDepth && (byte === COMMA || byte === CLOSE_BRACE)) {
      this.#capture = null;
      this.#take(capture);
      return false;
    }
    if (capture.length === MAX_USAGE_BYTES) {
      this.#unreadable = true;
      this.#isDone = true;
    }
    capture.push(byte);
    if (this.#inString) {
      if (this.#isEscaped) this.#isEscaped = false;
      else if (byte === BACKSLASH) this.#isEscaped = true;
      else if (byte === QUOTE) this.#inString = false;
    } else if (byte === QUOTE) this.#inString = true;
    else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) this.#depth++;
    else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) this.#depth--;
    return true;
  }

  #inText(byte: number): void {
    if (byte === QUOTE && !this.#isEscaped) {
      this.#inString = false;
      if (this.#name !== null) this.#named(this.#name);
      this.#name = null;
      return;
    }
    this.#isEscaped = byte === BACKSLASH && !this.#isEscaped;
    if (this.#name !== null && this.#name.length < MAX_NAME_BYTES) this.#name.push(byte);
  }

  #named(bytes: readonly number[]): void {
    const name = textOf(bytes);
    this.#expectsName = false;
    if (this.#depth === 1) this.#member1 = name;
    else this.#member2 = name;
  }

  #structure(byte: number): void {
    switch (byte) {
      case QUOTE:
        this.#inString = true;
        if (this.#expectsName) this.#name = [];
        return;
      case COLON:
        this.#beginValue();
        return;
      case COMMA:
        this.#expectsName = this.#holdsMembers;
        return;
      case OPEN_BRACE:
        this.#depth++;
        if (this.#depth === 1) this.#isRootObject = true;
        else if (this.#depth === 2) this.#isInContainer = this.#isRootObject && this.#member1 === this.#container;
        this.#expectsName = this.#holdsMembers;
        return;
      case OPEN_BRACKET:
        this.#depth++;
        this.#expectsName = false;
        if (this.#depth === 1) this.#isDone = true;
        return;
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        this.#depth--;
        this.#expectsName = false;
        if (this.#depth <= 0) this.#isDone = true;
        else if (this.#depth === 1) this.#isInContainer = false;
        return;
      default:
        // No object: nothing of it is a usage. A byte order mark or white space may stand before one.
        if (this.#depth === 0 && byte > SPACE && byte !== 0xef && byte !== 0xbb && byte !== 0xbf) this.#isDone = true;
    }
  }

  get #holdsMembers(): boolean {
    return (this.#depth === 1 && this.#isRootObject) || (this.#depth === 2 && this.#isInContainer);
  }

  #beginValue(): void {
    if (!this.#holdsMembers) return;
    const isUsage = this.#depth === 1 ? this.#member1 === this.#member : this.#member2 === NAME_OF_USAGE;
    if (!isUsage) return;
    this.#capture = [];
    this.#captureDepth = this.#depth;
  }

  #take(bytes: readonly number[]): void {
    let value: unknown;
    try {
      value = JSON.parse(String.fromCharCode(...bytes));
    } catch {
      this.#unreadable = true;
      return;
    }
    // Events carry `usage: null` before the final one.
    if (value === null) return;
    const usage = { value, isPartial: this.#captureDepth === 2 && this.#container === 'message' };
    if (this.#unreadable) return;
    this.#usages.set(JSON.stringify(usage), usage);
    if (this.#usages.size <= MAX_USAGES) return;
    this.#unreadable = true;
    this.#usages.clear();
  }
}

function textOf(bytes: readonly number[]): string {
  const text = String.fromCharCode(...bytes);
  if (!text.includes('\\')) return text;
  try {
    return JSON.parse(`"${text}"`) as string;
  } catch {
    return text;
  }
}

/** What of an answer the receipt counts. */
export type CountedUsage = Pick<Receipt, 'usage' | 'hidden_tokens' | 'endpoint'>;

/** Whether all that an answer reports is what its receipt says. An answer that reports nothing disagrees with nothing. */
export function agreesWithReceipt(report: UsageReport, receipt: CountedUsage): boolean {
  return report !== 'unreadable' && report.every((reported) => agrees(reported, receipt));
}

function agrees({ value, isPartial }: ReportedUsage, { usage, hidden_tokens, endpoint }: CountedUsage): boolean {
  const { prompt_tokens, completion_tokens, total_tokens, cached_tokens = 0 } = usage;
  if (endpoint === '/v1/messages/count_tokens') return value === prompt_tokens;
  const said = membersOf(value);
  const is = (member: unknown, count: number): boolean => member === undefined || member === count;
  if (endpoint === '/v1/embeddings') return said.prompt_tokens === prompt_tokens && is(said.total_tokens, total_tokens);
  // `/v1/responses` answers a body with messages as a chat completion, so that the names in the usage decide.
  if ('prompt_tokens' in said || 'completion_tokens' in said) {
    return (
      said.prompt_tokens === prompt_tokens &&
      said.completion_tokens === completion_tokens &&
      is(said.total_tokens, total_tokens) &&
      is(membersOf(said.prompt_tokens_details).cached_tokens, cached_tokens) &&
      is(membersOf(said.completion_tokens_details).reasoning_tokens, hidden_tokens)
    );
  }
  const details = membersOf(said.output_tokens_details);
  if (endpoint !== '/v1/messages') {
    return (
      said.input_tokens === prompt_tokens &&
      said.output_tokens === completion_tokens &&
      is(said.total_tokens, total_tokens) &&
      is(membersOf(said.input_tokens_details).cached_tokens, cached_tokens) &&
      is(details.reasoning_tokens, hidden_tokens)
    );
  }
  // `input_tokens` excludes cached tokens in the Messages format, so only the sum is compared.
  const prompt = sum(said.input_tokens, said.cache_creation_input_tokens ?? 0, said.cache_read_input_tokens ?? 0);
  if (isPartial) return prompt === prompt_tokens;
  return prompt === prompt_tokens && said.output_tokens === completion_tokens && is(details.thinking_tokens, hidden_tokens);
}

function membersOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
}

function sum(...counts: readonly unknown[]): number {
  return counts.reduce<number>((total, count) => total + (typeof count === 'number' ? count : Number.NaN), 0);
}
