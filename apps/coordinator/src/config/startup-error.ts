/** Reason why the program cannot start or continue: one sentence for the operator, without a stack. */
export class StartupError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'StartError';
  }
}

/** A setting that cannot be used: the next start would fail, too. */
export class SettingsError extends StartupError {}

/** System error code (`EADDRINUSE`, `EACCES`, `SQLITE_CANTOPEN`, …) of any thrown value, or the first line of its message. */
export function errorReason(error: unknown): string {
  if (error instanceof Error) {
    if ('code' in error && typeof error.code === 'string') return error.code;
    return error.message.split('\n')[0] ?? error.name;
  }
  return String(error);
}
