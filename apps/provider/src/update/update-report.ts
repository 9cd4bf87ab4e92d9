/** What an update came to, for the owner and for scripts. */

export type UpdateOutcome =
  /** Nothing newer is on offer. */
  | 'current'
  /** A certain version was asked for, and nobody gives it, or it is older than what runs and not on the disk. */
  | 'not_offered'
  /** Something newer is, and only that was asked. */
  | 'available'
  /** It lies beside what runs, whole, and was not switched to. */
  | 'ready'
  /** The next start runs it; no provider runs now, or one that was started by hand. */
  | 'switched'
  /** It runs, and has shown that it works. */
  | 'updated'
  /** It did not come up, and the version before runs again. */
  | 'rolled_back'
  /** It is known not to work on this machine. */
  | 'broken'
  /** Somebody else updates this installation. */
  | 'not_ours';

export interface UpdateReport {
  readonly outcome: UpdateOutcome;
  readonly installed: string;
  /** The version it is about; null where none is on offer. */
  readonly version: string | null;
  readonly notes: string | null;
  /** Sentences for the owner. */
  readonly text: readonly string[];
}
