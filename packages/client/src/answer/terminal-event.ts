/** Withholds the final event of a stream until the answer is verified. The `[DONE]` of chat streams comes from the client. */
import { concatBytes } from '@inference/protocol';

const LF = 0x0a;
const EMPTY = new Uint8Array(0);

export class TerminalEventGate {
  readonly #terminalLines: ReadonlySet<string>;
  #pending: Uint8Array = EMPTY;
  #isHolding = false;

  /** @param terminalEvents Names of the events after which an SDK considers the answer complete. */
  constructor(terminalEvents: readonly string[]) {
    this.#terminalLines = new Set(terminalEvents.map((name) => `event: ${name}\n`));
  }

  /** Returns the bytes to pass on now: whole events before the terminal event. */
  push(bytes: Uint8Array): Uint8Array {
    this.#pending = this.#pending.length === 0 ? bytes : concatBytes(this.#pending, bytes);
    if (this.#isHolding) return EMPTY;
    let start = 0;
    for (let end = eventEnd(this.#pending, start); end !== -1; end = eventEnd(this.#pending, start)) {
      if (this.#terminalLines.has(firstLine(this.#pending.subarray(start, end)))) {
        this.#isHolding = true;
        break;
      }
      start = end;
    }
    const passed = this.#pending.subarray(0, start);
    this.#pending = this.#pending.subarray(start);
    return passed;
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

function firstLine(event: Uint8Array): string {
  const line = event.subarray(0, event.indexOf(LF) + 1);
  // An event name is ASCII and short; another line is content.
  return line.length > 64 ? '' : String.fromCharCode(...line);
}
