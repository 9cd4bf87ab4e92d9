/**
 * `StreamCheck` checks in bounded memory that clients and verifiers read a provider's stream of server-sent events alike.
 *
 * Coordinator, clients and verifiers share this code, so that they reject the same streams.
 */
import { utf8 } from './bytes.js';
import { endOfShape, shapeOf } from './event-shape.js';
import { JsonObjectCheck } from './json-object-check.js';

const LF = 0x0a;
/** The first bytes of the only two lines of an event. */
const EVENT_LINE = utf8('event: ');
const DATA_LINE = utf8('data: ');
/** Names of events, such as `response.output_text.delta`. */
const NAME = /^[\w.]+$/;
/** Longer than the names of all formats. */
const MAX_NAME_LENGTH = 64;
/** Names of error events, at which clients stop to read. Providers report failures outside the stream. */
const ERROR_EVENTS: ReadonlySet<string> = new Set(['error', 'response.failed']);
/** Events without a known shape, after which the first shape is learned: a short answer would not repeat one often enough. */
const FIRST_LEARNED = 4;

/**
 * Position in an event, which is an optional `event:` line, a `data:` line, and a blank line.
 *
 * `name_prefix` and `data_prefix`: within the first bytes of a line. `after_data`: at the end of the data. `end`: at the blank line.
 */
type Position = 'between' | 'name_prefix' | 'name' | 'after_name' | 'data_prefix' | 'data' | 'after_data' | 'end';

export class StreamCheck {
  readonly #terminalEvents: readonly string[];
  readonly #data = new JsonObjectCheck('type', { isEventData: true });
  #position: Position = 'between';
  /** Matched bytes of a line's prefix. */
  #matched = 0;
  #name = '';
  #hasTerminalEvent = false;
  /** Shape of an event that was checked. */
  #shape: Uint8Array | null = null;
  /** Number of events without a known shape. */
  #checkedCount = 0;
  /** Value of `#checkedCount` at which the next shape is learned. Doubles, so that answers of many shapes do not cost much more. */
  #learnAt = FIRST_LEARNED;

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
   * Rejected: comments, which are not signed; carriage returns, which some clients ignore; `[DONE]` and other data than JSON objects; an
   * error in the data; a `type` other than the event's name, as some clients look at one and some at the other; and content after the
   * terminal event.
   *
   * @param onNew Receives all bytes but whole events that differ only in strings and numbers from events before them. Such events report no
   * usage, so that `UsageReader` need not read them.
   */
  accepts(bytes: Uint8Array, onNew: (part: Uint8Array) => void = () => {}): boolean {
    let at = 0;
    while (at < bytes.length) {
      const start = at;
      at = this.#endOfKnownEvent(bytes, start);
      if (at !== -1) continue;
      at = this.#takeEvent(bytes, start);
      if (at === -1) return false;
      onNew(bytes.subarray(start, at));
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

  #endOfKnownEvent(bytes: Uint8Array, start: number): number {
    if (this.#shape === null || this.#position !== 'between' || this.#hasTerminalEvent) return -1;
    return endOfShape(this.#shape, bytes, start);
  }

  /** Takes bytes to the end of an event, or of the bytes. Returns the index after them; -1 if they are rejected. */
  #takeEvent(bytes: Uint8Array, start: number): number {
    const isWhole = this.#position === 'between';
    let dataStart = 0;
    for (let at = start; at < bytes.length; at++) {
      if (this.#position === 'data') {
        dataStart = at;
        at = this.#data.take(bytes, at);
        if (at === -1) return -1;
        if (this.#data.isDone) this.#position = 'after_data';
        if (at === bytes.length) break;
      }
      if (!this.#take(bytes[at] as number)) return -1;
      if (!this.isBetweenEvents) continue;
      if (isWhole) this.#learnShape(bytes.subarray(start, at + 1), dataStart - start);
      return at + 1;
    }
    return bytes.length;
  }

  #learnShape(event: Uint8Array, dataStart: number): void {
    this.#checkedCount++;
    if (this.#hasTerminalEvent || this.#checkedCount < this.#learnAt) return;
    this.#learnAt *= 2;
    this.#shape = shapeOf(event, dataStart) ?? this.#shape;
  }

  #take(byte: number): boolean {
    switch (this.#position) {
      case 'between':
        if (this.#hasTerminalEvent) return false;
        this.#name = '';
        return byte === EVENT_LINE[0] ? this.#begin('name_prefix') : byte === DATA_LINE[0] && this.#begin('data_prefix');
      case 'after_name':
        return byte === DATA_LINE[0] && this.#begin('data_prefix');
      case 'name_prefix':
        return this.#match(byte, EVENT_LINE, 'name');
      case 'data_prefix':
        return this.#match(byte, DATA_LINE, 'data');
      case 'name':
        if (byte === LF) return this.#named(this.#name);
        this.#name += String.fromCharCode(byte);
        return this.#name.length <= MAX_NAME_LENGTH;
      case 'after_data':
        this.#position = 'end';
        return byte === LF;
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
    return true;
  }

  #match(byte: number, prefix: Uint8Array, next: 'name' | 'data'): boolean {
    if (byte !== prefix[this.#matched]) return false;
    this.#matched++;
    if (this.#matched < prefix.length) return true;
    this.#position = next;
    if (next === 'data') this.#data.begin(this.#name === '' ? null : this.#name);
    return true;
  }

  #named(name: string): boolean {
    this.#position = 'after_name';
    this.#hasTerminalEvent = this.#terminalEvents.includes(name);
    return NAME.test(name) && !ERROR_EVENTS.has(name);
  }
}
