/** What the exit code of every command means, so that scripts can rely on it. `verify` and `serve` have no codes of their own. */
export const EXIT = {
  fine: 0,
  /** Something needs the owner, or what was asked for could not be done; a sentence on standard error says what. */
  needsOwner: 1,
  /** The command line cannot be understood. */
  wrongUse: 2,
  /** No daemon runs with this data directory. */
  notRunning: 3,
  /** The coordinator cannot be reached. */
  unreachable: 4,
} as const;
