/**
 * `UsageReader` extracts usage objects from a response in bounded memory; `agreesWithReceipt` compares them with the signed receipt.
 *
 * Coordinator, clients and verifiers share this code, so that they reject the same responses.
 */
import type { Endpoint } from './ids.js';
import type { Receipt } from './statements/receipt.js';

/** A usage object or token count in a response. `isPartial`: sent before the answer was complete (Messages `message_start`). */
interface ReportedUsage {
  readonly value: unknown;
  readonly isPartial: boolean;
}

/** `unreadable`: a usage value is not JSON or too long, or there are too many distinct values. */
export type UsageReport = readonly ReportedUsage[] | 'unreadable';

/** Maximum length of a usage object, in bytes. */
const MAX_USAGE_BYTES = 4096;
/** Maximum distinct usage objects per response. */
const MAX_USAGES = 8;
/** Maximum length of a compared member name, in bytes. Each character may be a six-byte escape. */
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
/** The bytes of `data:`. */
const DATA = [0x64, 0x61, 0x74, 0x61, COLON] as const;
const NAME_OF_USAGE = 'usage';

/** Incremental JSON and SSE scanner for the usage in one response. Chunks may be split anywhere. */
export class UsageReader {
  /** Root member to read: `usage`, or `input_tokens` of a token count. */
  readonly #member: string;
  /** Member of stream events whose object may also have `usage`; null: none. */
  readonly #container: string | null;
  readonly #isStream: boolean;
  readonly #usages = new Map<string, ReportedUsage>();
  #isUnreadable = false;

  /** Matched bytes of `data:` at the start of the line; 5: inside the value; -1: the line has another field. */
  #dataPrefixBytes: number;
  #isLineEmpty = true;

  // The fields below are the state of one JSON text.
  /** The JSON text ended, or is not an object. */
  #isDone = false;
  #depth = 0;
  #isInString = false;
  #isEscaped = false;
  /** The JSON text is an object. */
  #isRootObject = false;
  /** The current value at depth 2 is the object of the container member. */
  #isInContainer = false;
  /** The next string is a member name. */
  #expectsName = false;
  /** Bytes so far of a member name; null outside one. */
  #name: number[] | null = null;
  /** Name of the current member at depth 1 and at depth 2. */
  #rootMember = '';
  #innerMember = '';
  /** Bytes so far of a usage value; null outside one. */
  #capture: number[] | null = null;
  /** Depth of the object that has the usage value as a member. */
  #captureDepth = 0;

  constructor(endpoint: Endpoint, stream: boolean) {
    this.#isStream = stream;
    this.#dataPrefixBytes = stream ? 0 : DATA.length;
    this.#member = endpoint === '/v1/messages/count_tokens' ? 'input_tokens' : NAME_OF_USAGE;
    this.#container = !stream ? null : endpoint === '/v1/messages' ? 'message' : endpoint === '/v1/responses' ? 'response' : null;
  }

  push(bytes: Uint8Array): void {
    if (this.#isUnreadable) return;
    const { length } = bytes;
    for (let index = 0; index < length; index++) {
      if (this.#isStream) {
        // Only `data:` lines of a stream contain JSON.
        if (this.#dataPrefixBytes !== DATA.length || bytes[index] === LF) {
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
      if (this.#isInString && !this.#isEscaped && this.#name === null && this.#capture === null) {
        // Strings make up most of a response, so this loop skips their bytes quickly.
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

  /** Distinct usage values, in order of arrival. */
  end(): UsageReport {
    return this.#isUnreadable ? 'unreadable' : [...this.#usages.values()];
  }

  /** Processes a byte of SSE framing. The `data:` lines of an event form one JSON text; a blank line ends the event. */
  #line(byte: number): void {
    if (byte === LF) {
      if (this.#isLineEmpty) this.#reset();
      this.#isLineEmpty = true;
      this.#dataPrefixBytes = 0;
      return;
    }
    this.#isLineEmpty = false;
    if (this.#dataPrefixBytes >= 0) this.#dataPrefixBytes = byte === DATA[this.#dataPrefixBytes] ? this.#dataPrefixBytes + 1 : -1;
  }

  #reset(): void {
    this.#isDone = false;
    this.#depth = 0;
    this.#isInString = false;
    this.#isEscaped = false;
    this.#isRootObject = false;
    this.#isInContainer = false;
    this.#expectsName = false;
    this.#name = null;
    this.#capture = null;
  }

  #byte(byte: number): void {
    if (this.#capture !== null && this.#captured(byte, this.#capture)) return;
    if (this.#isInString) this.#inText(byte);
    else this.#structure(byte);
  }

  /** Appends a byte to the captured value. Returns false if the value ended before this byte. */
  #captured(byte: number, capture: number[]): boolean {
    if (!this.#isInString && this.#depth === this.#captureDepth && (byte === COMMA || byte === CLOSE_BRACE)) {
      this.#capture = null;
      this.#take(capture);
      return false;
    }
    if (capture.length === MAX_USAGE_BYTES) {
      this.#isUnreadable = true;
      this.#isDone = true;
    }
    capture.push(byte);
    if (this.#isInString) {
      if (this.#isEscaped) this.#isEscaped = false;
      else if (byte === BACKSLASH) this.#isEscaped = true;
      else if (byte === QUOTE) this.#isInString = false;
    } else if (byte === QUOTE) this.#isInString = true;
    else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) this.#depth++;
    else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) this.#depth--;
    return true;
  }

  #inText(byte: number): void {
    if (byte === QUOTE && !this.#isEscaped) {
      this.#isInString = false;
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
    if (this.#depth === 1) this.#rootMember = name;
    else this.#innerMember = name;
  }

  #structure(byte: number): void {
    switch (byte) {
      case QUOTE:
        this.#isInString = true;
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
        else if (this.#depth === 2) this.#isInContainer = this.#isRootObject && this.#rootMember === this.#container;
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
        // Only an object can contain usage. A byte order mark or white space may precede the object.
        if (this.#depth === 0 && byte > SPACE && byte !== 0xef && byte !== 0xbb && byte !== 0xbf) this.#isDone = true;
    }
  }

  get #holdsMembers(): boolean {
    return (this.#depth === 1 && this.#isRootObject) || (this.#depth === 2 && this.#isInContainer);
  }

  #beginValue(): void {
    if (!this.#holdsMembers) return;
    const isUsage = this.#depth === 1 ? this.#rootMember === this.#member : this.#innerMember === NAME_OF_USAGE;
    if (!isUsage) return;
    this.#capture = [];
    this.#captureDepth = this.#depth;
  }

  #take(bytes: readonly number[]): void {
    let value: unknown;
    try {
      value = JSON.parse(String.fromCharCode(...bytes));
    } catch {
      this.#isUnreadable = true;
      return;
    }
    // Stream events before the last one have `usage: null`.
    if (value === null) return;
    const usage = { value, isPartial: this.#captureDepth === 2 && this.#container === 'message' };
    if (this.#isUnreadable) return;
    this.#usages.set(JSON.stringify(usage), usage);
    if (this.#usages.size <= MAX_USAGES) return;
    this.#isUnreadable = true;
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

/** Receipt members that reported usage must match. */
type CountedUsage = Pick<Receipt, 'usage' | 'hidden_tokens' | 'endpoint'>;

/** Whether all usage in the response matches the receipt. A response without usage matches. */
export function agreesWithReceipt(report: UsageReport, receipt: CountedUsage): boolean {
  return report !== 'unreadable' && report.every((reported) => matchesCounts(reported, receipt));
}

function matchesCounts({ value, isPartial }: ReportedUsage, { usage, hidden_tokens, endpoint }: CountedUsage): boolean {
  const { prompt_tokens, completion_tokens, total_tokens, cached_tokens = 0 } = usage;
  if (endpoint === '/v1/messages/count_tokens') return value === prompt_tokens;
  const reported = membersOf(value);
  const is = (member: unknown, count: number): boolean => member === undefined || member === count;
  if (endpoint === '/v1/embeddings') return reported.prompt_tokens === prompt_tokens && is(reported.total_tokens, total_tokens);
  // `/v1/responses` answers bodies with `messages` as chat completions, so the member names decide, not the endpoint.
  if ('prompt_tokens' in reported || 'completion_tokens' in reported) {
    return (
      reported.prompt_tokens === prompt_tokens &&
      reported.completion_tokens === completion_tokens &&
      is(reported.total_tokens, total_tokens) &&
      is(membersOf(reported.prompt_tokens_details).cached_tokens, cached_tokens) &&
      is(membersOf(reported.completion_tokens_details).reasoning_tokens, hidden_tokens)
    );
  }
  const details = membersOf(reported.output_tokens_details);
  if (endpoint !== '/v1/messages') {
    return (
      reported.input_tokens === prompt_tokens &&
      reported.output_tokens === completion_tokens &&
      is(reported.total_tokens, total_tokens) &&
      is(membersOf(reported.input_tokens_details).cached_tokens, cached_tokens) &&
      is(details.reasoning_tokens, hidden_tokens)
    );
  }
  // In the Messages format, `input_tokens` excludes cached tokens. Requests without `cache_control` report 0 cached tokens.
  const cached = reported.cache_read_input_tokens ?? 0;
  const prompt = sum(reported.input_tokens, reported.cache_creation_input_tokens ?? 0, cached);
  if (!isPartial && cached !== 0 && cached !== cached_tokens) return false;
  if (isPartial) return prompt === prompt_tokens;
  return prompt === prompt_tokens && reported.output_tokens === completion_tokens && is(details.thinking_tokens, hidden_tokens);
}

function membersOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
}

function sum(...counts: readonly unknown[]): number {
  return counts.reduce<number>((total, count) => total + (typeof count === 'number' ? count : Number.NaN), 0);
}
