/**
 * `TerminalEventGate` withholds the final event of a stream until the answer is verified.
 *
 * Chat streams have no final event; this package appends their `[DONE]` after the verification.
 */
import { concatBytes } from '@inference/protocol';

const LF = 0x0a;
const EMPTY = new Uint8Array(0);
const EVENT_FIELD = 'event: ';
const DATA_FIELD = 'data: ';
const decoder = new TextDecoder();

export class TerminalEventGate {
  readonly #terminalEvents: ReadonlySet<string>;
  /** Bytes of an incomplete event, or of the terminal event and all after it. */
  #pending: Uint8Array = EMPTY;
  /** Whether the terminal event arrived. */
  #isHolding = false;

  /** @param terminalEvents Names of the events after which an SDK considers the answer complete. */
  constructor(terminalEvents: readonly string[]) {
    this.#terminalEvents = new Set(terminalEvents);
  }

  /** Returns the bytes to pass on now: whole events before the terminal event. */
  push(bytes: Uint8Array): Uint8Array {
    this.#pending = this.#pending.length === 0 ? bytes : concatBytes(this.#pending, bytes);
    if (this.#isHolding) return EMPTY;
    let start = 0;
    for (let end = eventEnd(this.#pending, start); end !== -1; end = eventEnd(this.#pending, start)) {
      if (this.#isTerminal(this.#pending.subarray(start, end))) {
        this.#isHolding = true;
        break;
      }
      start = end;
    }
    const passed = this.#pending.subarray(0, start);
    this.#pending = this.#pending.subarray(start);
    return passed;
  }

  /** Some clients look at the name of an event, others at the `type` of its data. A hostile provider may let them differ. */
  #isTerminal(event: Uint8Array): boolean {
    if (this.#terminalEvents.size === 0) return false;
    const lines = decoder.decode(event).split('\n');
    return lines.some((line) => {
      if (line.startsWith(EVENT_FIELD)) return this.#terminalEvents.has(line.slice(EVENT_FIELD.length).trim());
      return line.startsWith(DATA_FIELD) && this.#terminalEvents.has(typeOf(line.slice(DATA_FIELD.length)));
    });
  }

  /** Returns the withheld rest. Call after the answer is verified. */
  release(): Uint8Array {
    const rest = this.#pending;
    this.#pending = EMPTY;
    return rest;
  }
}

/** Returns the position after the blank line that ends the event at `start`; -1 while the event is incomplete. */
function eventEnd(bytes: Uint8Array, start: number): number {
  for (let at = bytes.indexOf(LF, start); at !== -1; at = bytes.indexOf(LF, at + 1)) if (bytes[at + 1] === LF) return at + 2;
  return -1;
}

/** The member `type` of a JSON object; otherwise ''. */
function typeOf(json: string): string {
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string' ? value.type : '';
  } catch {
    return '';
  }
}
