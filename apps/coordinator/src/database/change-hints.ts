/**
 * `ChangeHints`: tells other coordinators of the cluster which rows have changed, so that they read them at once.
 *
 * A lost hint only delays the others, because they also read the rows periodically.
 */

/** Kinds of changes. The comments say what a hint's subject identifies. Without a comment, a kind has no subject. */
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
  /** An account. Another coordinator needs the unused money of its credit leases (parts of its balance lent to coordinators). */
  'credit',
] as const;
export type ChangeKind = (typeof CHANGE_KINDS)[number];

export interface ChangeHint {
  readonly kind: ChangeKind;
  /** Empty for kinds without a subject. */
  readonly subject: string;
}

export class ChangeHints {
  readonly #listenerByKind = new Map<ChangeKind, (subjects: ReadonlySet<string>) => unknown>();
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
    this.#listenerByKind.set(kind, listener);
  }

  /** Handles hints of another coordinator. */
  receive(hints: Iterable<ChangeHint>): void {
    const subjects = new Map<ChangeKind, Set<string>>();
    for (const { kind, subject } of hints) subjects.set(kind, (subjects.get(kind) ?? new Set()).add(subject));
    for (const [kind, named] of subjects) this.#listenerByKind.get(kind)?.(named);
  }
}
