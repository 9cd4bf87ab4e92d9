/**
 * `Nudges`: notifies peers over NATS of changed database rows, so that they read the rows at once.
 *
 * A nudge contains only hints: kinds and ids of rows. Nudges may be lost, because every coordinator also reads the rows periodically.
 */
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

/** Time during which hints are gathered, of this coordinator before publishing and of peers before the rows are read. */
const GATHER_MS = 20;
const MAX_PER_MESSAGE = 200;
/** Maximum gathered hints. Further ones are dropped; the periodic reads find the changes. */
const MAX_GATHERED = 2000;
const MAX_MESSAGE_BYTES = 64 * 1024;
/** Maximum accepted messages per second from all peers together. */
const MAX_MESSAGES_PER_SECOND = 500;

const nudge = Compile(
  Type.Object({
    hints: Type.Array(
      Type.Object({ kind: Type.Enum([...CHANGE_KINDS]), subject: Type.String({ maxLength: 128, pattern: '^[A-Za-z0-9._:-]*$' }) }),
      { maxItems: MAX_PER_MESSAGE },
    ),
  }),
);

/** Null for a message that violates the schema. */
export const parseNudge = (bytes: Uint8Array): readonly ChangeHint[] | null => parseMessage(bytes, nudge)?.hints ?? null;

export class Nudges {
  readonly #options: NudgesOptions;
  readonly #now: () => number;
  readonly #outgoing: HintBatch;
  readonly #incoming: HintBatch;
  readonly #unsubscribe: () => void;
  readonly #rate = new MessageRate(MAX_MESSAGES_PER_SECOND);

  constructor(options: NudgesOptions) {
    const { broadcast, hints, now = () => performance.now() } = options;
    this.#options = options;
    this.#now = now;
    this.#outgoing = new HintBatch((batch) => this.#publish(batch));
    this.#incoming = new HintBatch((batch) => hints.receive(batch));
    this.#unsubscribe = broadcast.subscribe('fleet.nudge.*', (subject, bytes) => this.#receive(subject, bytes));
    hints.connect((hint) => this.#outgoing.add(hint));
  }

  /** Publishes gathered hints, and stops. */
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

/** Gathers distinct hints for {@link GATHER_MS}, then passes them to a callback together. */
class HintBatch {
  readonly #onGathered: (hints: ChangeHint[]) => void;
  readonly #hints = new Map<string, ChangeHint>();
  #timer: NodeJS.Timeout | null = null;

  constructor(onGathered: (hints: ChangeHint[]) => void) {
    this.#onGathered = onGathered;
  }

  add(hint: ChangeHint): void {
    if (this.#hints.size >= MAX_GATHERED) return;
    this.#hints.set(`${hint.kind} ${hint.subject}`, hint);
    this.#timer ??= setTimeout(() => this.flush(), GATHER_MS);
  }

  flush(): void {
    const hints = [...this.#hints.values()];
    this.close();
    if (hints.length > 0) this.#onGathered(hints);
  }

  close(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#hints.clear();
  }
}
