/** `Nudges` broadcasts hints of changed rows to all peers, and passes theirs on: gathered for a moment, validated and bounded. */
import Type from 'typebox';
import { Compile } from 'typebox/compile';
import { CHANGE_KINDS, type ChangeHint, type ChangeHints } from '../database/change-hints.js';
import { encodeMessage, parseMessage } from './json-message.js';
import type { Broadcast } from './membership/membership.js';
import { MessageRate } from './message-rate.js';

interface NudgesOptions {
  readonly self: string;
  readonly broadcast: Broadcast;
  readonly hints: ChangeHints;
  /** Milliseconds; monotonic. */
  readonly now?: () => number;
}

/** Time for which hints are gathered, in milliseconds. */
const GATHER_MS = 20;
const MAX_PER_MESSAGE = 200;
/** Gathered hints. Beyond, hints are dropped: the periodic reads remain. */
const MAX_GATHERED = 2000;
const MAX_MESSAGE_BYTES = 64 * 1024;
/** Maximum messages of all peers that are accepted per second. */
const MAX_MESSAGES_PER_SECOND = 500;

const nudge = Compile(
  Type.Object({
    hints: Type.Array(
      Type.Object({ kind: Type.Enum([...CHANGE_KINDS]), subject: Type.String({ maxLength: 128, pattern: '^[A-Za-z0-9._:-]*$' }) }),
      { maxItems: MAX_PER_MESSAGE },
    ),
  }),
);

/** Null for a message that breaks the schema. */
export const parseNudge = (bytes: Uint8Array): readonly ChangeHint[] | null => parseMessage(bytes, nudge)?.hints ?? null;

export class Nudges {
  readonly #options: NudgesOptions;
  readonly #now: () => number;
  readonly #outgoing: Gathered;
  readonly #incoming: Gathered;
  readonly #unsubscribe: () => void;
  readonly #rate = new MessageRate(MAX_MESSAGES_PER_SECOND);

  constructor(options: NudgesOptions) {
    const { broadcast, hints, now = () => performance.now() } = options;
    this.#options = options;
    this.#now = now;
    this.#outgoing = new Gathered((gathered) => this.#publish(gathered));
    this.#incoming = new Gathered((gathered) => hints.receive(gathered));
    this.#unsubscribe = broadcast.subscribe('fleet.nudge.*', (subject, bytes) => this.#receive(subject, bytes));
    hints.connect((hint) => this.#outgoing.add(hint));
  }

  /** Publishes what is gathered. */
  close(): void {
    this.#unsubscribe();
    this.#incoming.close();
    this.#outgoing.flush();
  }

  #publish(hints: ChangeHint[]): void {
    const { broadcast, self } = this.#options;
    for (let start = 0; start < hints.length; start += MAX_PER_MESSAGE) {
      broadcast.publish(`fleet.nudge.${self}`, encodeMessage({ hints: hints.slice(start, start + MAX_PER_MESSAGE) }));
    }
  }

  #receive(subject: string, bytes: Uint8Array): void {
    if (subject === `fleet.nudge.${this.#options.self}` || bytes.length > MAX_MESSAGE_BYTES) return;
    if (!this.#rate.admit(this.#now())) return;
    for (const hint of parseNudge(bytes) ?? []) this.#incoming.add(hint);
  }
}

/** Distinct hints, gathered for a moment. */
class Gathered {
  readonly #take: (hints: ChangeHint[]) => void;
  readonly #hints = new Map<string, ChangeHint>();
  #timer: NodeJS.Timeout | null = null;

  constructor(take: (hints: ChangeHint[]) => void) {
    this.#take = take;
  }

  add(hint: ChangeHint): void {
    if (this.#hints.size >= MAX_GATHERED) return;
    this.#hints.set(`${hint.kind} ${hint.subject}`, hint);
    this.#timer ??= setTimeout(() => this.flush(), GATHER_MS);
  }

  flush(): void {
    const hints = [...this.#hints.values()];
    this.close();
    if (hints.length > 0) this.#take(hints);
  }

  close(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#hints.clear();
  }
}
