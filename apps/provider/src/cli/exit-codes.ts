/** Exit codes of the commands, for scripts. Only `serve` has another one: 75 requests a restart from the service manager. */
export const EXIT = {
  fine: 0,
  /** The owner must act, or the request failed. The output says why. */
  needsOwner: 1,
  /** The command line cannot be understood. */
  wrongUse: 2,
  /** No daemon runs for this data directory. */
  notRunning: 3,
  /** The coordinator cannot be reached. */
  unreachable: 4,
} as const;
