/** Log of JSON lines. Callers must not log bodies, keys, prompts or outputs, and must pass errors through {@link errorFacts}. */
import { type DestinationStream, type Logger, pino } from 'pino';
import type { LogLevel } from './config/config.js';

export type Log = Logger;

export function createLog(level: LogLevel, destination: DestinationStream): Log {
  return pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, destination);
}

const MAX_LOGGED_ERRORS = 8;
const MAX_LOGGED_FRAMES = 6;

interface ErrorFacts {
  /** Name of the error, or the JavaScript type of a thrown value that is no `Error`. */
  readonly name: string;
  readonly code?: string;
  /** Innermost stack frames, joined by ` < `. */
  readonly at?: string;
  /** First errors of an `AggregateError`. */
  readonly errors?: readonly ErrorFacts[];
}

/** Loggable parts of an error. Leaves the message out, because parsers quote their input in messages. */
export function errorFacts(error: unknown): ErrorFacts {
  if (!(error instanceof Error)) return { name: typeof error };
  const code = 'code' in error && typeof error.code === 'string' ? { code: error.code } : {};
  const frames = (error.stack ?? '').split('\n').filter((line) => /^\s+at /.test(line));
  return {
    name: error.name,
    ...code,
    at: frames
      .slice(0, MAX_LOGGED_FRAMES)
      .map((line) => line.trim())
      .join(' < '),
    ...(error instanceof AggregateError ? { errors: error.errors.slice(0, MAX_LOGGED_ERRORS).map(errorFacts) } : {}),
  };
}
