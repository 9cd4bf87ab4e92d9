/**
 * `ChangeHints`: notifies other coordinators of the cluster of changed rows, so that they read the rows at once.
 *
 * Hints may be lost or wrong, because every coordinator also reads the rows periodically.
 */

/** Kinds of changes. The comments say what the hint's subject identifies. */
export const CHANGE_KINDS = [
  /** An API key, or an account whose keys are affected. */
  'key',
  'prices',
  'catalogue',
  'quarantines',
  /** No subject: state or policy of rollouts. */
  'rollouts',
  /** A provider whose reputation gained or lost a restriction. */
  'reputation',
  /** A managed device, by the SHA-256 of its enclave key. */
  'device',
  /** A provider that was unlinked from its account. */
  'unlinked',
  /** An account whose credit lease another coordinator needs back. */
  'credit',
] as const;
export type ChangeKind = (typeof CHANGE_KINDS)[number];

export interface ChangeHint {
  readonly kind: ChangeKind;
  /** Empty for kinds without subject. */
  readonly subject: string;
}

export class ChangeHints {
  readonly #listeners = new Map<ChangeKind, (subjects: ReadonlySet<string>) => unknown>();
  #publish: ((hint: ChangeHint) => void) | null = null;

  /** Whether this coordinator runs in a cluster. */
  get isShared(): boolean {
    return this.#publish !== null;
  }

  /** Sets the function that sends hints to other coordinators. */
  connect(publish: (hint: ChangeHint) => void): void {
    this.#publish = publish;
  }

  /** Notifies other coordinators of a committed change. */
  publish(kind: ChangeKind, subject = ''): void {
    this.#publish?.({ kind, subject });
  }

  /** Sets the listener of a kind, called with the subjects of other coordinators' hints. The listener must not throw. */
  on(kind: ChangeKind, listener: (subjects: ReadonlySet<string>) => unknown): void {
    this.#listeners.set(kind, listener);
  }

  /** Handles hints of another coordinator. */
  receive(hints: Iterable<ChangeHint>): void {
    const subjects = new Map<ChangeKind, Set<string>>();
    for (const { kind, subject } of hints) subjects.set(kind, (subjects.get(kind) ?? new Set()).add(subject));
    for (const [kind, named] of subjects) this.#listeners.get(kind)?.(named);
  }
}
