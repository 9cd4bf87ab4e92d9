/**
 * `StreamCheck` checks in bounded memory that clients and verifiers read a provider's stream of server-sent events alike.
 *
 * Coordinator, clients and verifiers share this code, so that they reject the same streams.
 */
import { utf8 } from './bytes.js';

const LF = 0x0a;
const CR = 0x0d;
/** The first bytes of the only two lines of an event. */
const EVENT_LINE = utf8('event: ');
const DATA_LINE = utf8('data: ');
const SPACE = 0x20;
const DELETE = 0x7f;
const LEFT_BRACKET = 0x5b;
/** Longer than the names of all formats. */
const MAX_NAME_LENGTH = 64;
/** Names of error events, at which clients stop to read. Providers report failures outside the stream. */
const ERROR_EVENTS: ReadonlySet<string> = new Set(['error', 'response.failed']);

/**
 * Position in an event, which is an optional `event:` line, a `data:` line, and a blank line.
 *
 * `name_prefix` and `data_prefix`: within the first bytes of a line. `data_start`: at the first byte of the data. `end`: at the blank line.
 */
type Position = 'between' | 'name_prefix' | 'name' | 'after_name' | 'data_prefix' | 'data_start' | 'data' | 'end';

export class StreamCheck {
  readonly #terminalEvents: readonly string[];
  #position: Position = 'between';
  /** Matched bytes of a line's prefix. */
  #matched = 0;
  #name = '';
  #hasTerminalEvent = false;

  /**
   * @param terminalEvents Names of the events of which one ends the stream. Empty for formats that end with `data: [DONE]`, which no
   * provider writes.
   */
  constructor(terminalEvents: readonly string[]) {
    this.#terminalEvents = terminalEvents;
  }

  /**
   * Takes the next bytes, split anywhere. Returns false at the first byte that no provider writes; then the check is over.
   *
   * Rejected: comments, which are not signed; carriage returns, which some clients ignore; `[DONE]` and other data in brackets; and content
   * after the terminal event.
   */
  accepts(bytes: Uint8Array): boolean {
    if (bytes.includes(CR)) return false;
    for (let at = 0; at < bytes.length; at++) {
      if (this.#position === 'data') {
        at = bytes.indexOf(LF, at);
        if (at === -1) return true;
        this.#position = 'end';
      } else if (!this.#take(bytes[at] as number)) return false;
    }
    return true;
  }

  /** Whether the stream may end here without hiding a part of an event. */
  get isBetweenEvents(): boolean {
    return this.#position === 'between';
  }

  /** Whether all events are whole, and the last one is terminal if the format has terminal events. */
  get isComplete(): boolean {
    return this.isBetweenEvents && (this.#terminalEvents.length === 0 || this.#hasTerminalEvent);
  }

  #take(byte: number): boolean {
    switch (this.#position) {
      case 'between':
        if (this.#hasTerminalEvent) return false;
        return byte === EVENT_LINE[0] ? this.#begin('name_prefix') : byte === DATA_LINE[0] && this.#begin('data_prefix');
      case 'after_name':
        return byte === DATA_LINE[0] && this.#begin('data_prefix');
      case 'name_prefix':
        return this.#match(byte, EVENT_LINE, 'name');
      case 'data_prefix':
        return this.#match(byte, DATA_LINE, 'data_start');
      case 'data_start':
        // Clients may trim white space, also Unicode's, before they look for `[DONE]`.
        this.#position = 'data';
        return byte > SPACE && byte < DELETE && byte !== LEFT_BRACKET;
      case 'name':
        if (byte === LF) return this.#named(this.#name);
        this.#name += String.fromCharCode(byte);
        return this.#name.length <= MAX_NAME_LENGTH;
      case 'end':
        this.#position = 'between';
        return byte === LF;
      case 'data':
        return true;
      default:
        return this.#position satisfies never;
    }
  }

  #begin(position: 'name_prefix' | 'data_prefix'): true {
    this.#position = position;
    this.#matched = 1;
    this.#name = '';
    return true;
  }

  #match(byte: number, prefix: Uint8Array, next: 'name' | 'data_start'): boolean {
    if (byte !== prefix[this.#matched]) return false;
    this.#matched++;
    if (this.#matched === prefix.length) this.#position = next;
    return true;
  }

  #named(name: string): boolean {
    this.#position = 'after_name';
    this.#hasTerminalEvent = this.#terminalEvents.includes(name);
    return !ERROR_EVENTS.has(name);
  }
}
