/** `ChangeHints` tell other coordinators to reread rows. Hints may be lost or false; periodic reads find all changes. */

/** Kinds of changes, each with the subject that a hint names. */
export const CHANGE_KINDS = [
  /** An API key, or the account of keys. */
  'key',
  'prices',
  'catalogue',
  'quarantines',
  /** State or policy of rollouts. */
  'rollouts',
  /** A provider whose reputation gained or lost a restriction. */
  'reputation',
  /** SHA-256 of the enclave key of a managed device. */
  'device',
  /** A provider that was unlinked from its account. */
  'unlinked',
  /** An account with leased credit that another coordinator needs. */
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

  /** Whether there may be other coordinators. */
  get isShared(): boolean {
    return this.#publish !== null;
  }

  /** Sets the function that sends hints to other coordinators. */
  connect(publish: (hint: ChangeHint) => void): void {
    this.#publish = publish;
  }

  /** Notifies the other coordinators of a change that is in the database. */
  publish(kind: ChangeKind, subject = ''): void {
    this.#publish?.({ kind, subject });
  }

  /** Calls back with subjects of hints from other coordinators. One listener per kind; the listener must not throw. */
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
