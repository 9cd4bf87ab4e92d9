/** Exit codes that commands share, for scripts. `verify` and `serve` use no others. */
export const EXIT = {
  fine: 0,
  /** The owner must act, or the request failed; stderr has a sentence. */
  needsOwner: 1,
  /** The command line cannot be understood. */
  wrongUse: 2,
  /** No daemon runs for this data directory. */
  notRunning: 3,
  /** The coordinator cannot be reached. */
  unreachable: 4,
} as const;
