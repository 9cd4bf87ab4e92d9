/** Log of JSON lines. Bodies, keys, prompts and outputs are never logged. Errors are logged through {@link errorFacts}. */
import { type DestinationStream, type Logger, pino } from 'pino';
import type { LogLevel } from './config/config.js';

export type Log = Logger;

export function createLog(level: LogLevel, destination: DestinationStream): Log {
  return pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, destination);
}

/** Loggable parts of an error: name, code and stack frames. The message is left out, because parsers quote their input in messages. */
export function errorFacts(error: unknown): { readonly name: string; readonly code?: string; readonly at?: string } {
  if (!(error instanceof Error)) return { name: typeof error };
  const code = 'code' in error && typeof error.code === 'string' ? { code: error.code } : {};
  const frames = (error.stack ?? '').split('\n').filter((line) => /^\s+at /.test(line));
  return {
    name: error.name,
    ...code,
    at: frames
      .slice(0, 6)
      .map((line) => line.trim())
      .join(' < '),
  };
}
