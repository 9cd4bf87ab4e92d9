/** Reasons the program cannot start or go on, worded for the person who started it: one sentence, no stack. */
export class StartupError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'StartError';
  }
}

/** The system's error code (`EADDRINUSE`, `EACCES`, `SQLITE_CANTOPEN`, …) of anything thrown, or its message's first line. */
export function errorReason(error: unknown): string {
  if (error instanceof Error) {
    if ('code' in error && typeof error.code === 'string') return error.code;
    return error.message.split('\n')[0] ?? error.name;
  }
  return String(error);
}
