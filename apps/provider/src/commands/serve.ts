/** `serve`: runs the daemon until a signal ends it. */
import { type Logger, pino } from 'pino';
import { LOG_LEVELS } from '../config/config.js';
import { ConfigError, readConfig } from '../config/read-config.js';
import { Daemon } from '../daemon.js';
import { StartError, startSentence } from '../start-error.js';
import type { Command } from './command.js';
import { EXIT } from './exit-codes.js';
import { readServeFlags, SERVE_USAGE, type ServeOptions, serveOptions } from './serve-options.js';

export const serveCommand: Command = {
  name: 'serve',
  summary: 'Serves models in the foreground until a signal ends it.',
  usage: `${SERVE_USAGE}

Settings come from config.toml in the data directory; options go before them.
--check looks at the settings and serves nothing.`,
  run: serve,
};

/** Whatever still hangs this long after the jobs had their time is left to the system, in milliseconds. */
const STOP_LIMIT_MS = 4_000;

/** Resolves with the exit code of the process. */
async function serve(args: readonly string[]): Promise<number> {
  const flags = readServeFlags(args);
  if (flags.check) {
    const { socketUrl } = serveOptions(flags, readConfig(flags.configPath));
    process.stdout.write(`The settings are fine. The coordinator is ${new URL(socketUrl).host}.\n`);
    return EXIT.fine;
  }
  const starting = new AbortController();
  let interrupted: (() => void) | null = null;
  const signalled = new Promise<void>((done) => (interrupted = done));
  const hurry = new AbortController();
  const heard = new Set<string>();
  // The same signal again means: now. A terminal's SIGINT and then a supervisor's SIGTERM are one wish that came two ways.
  const onSignal = (signal: string = 'disconnect') => {
    if (heard.has(signal)) hurry.abort();
    heard.add(signal);
    starting.abort();
    interrupted?.();
  };
  process.on('SIGINT', onSignal);
  process.on('SIGTERM', onSignal);
  // Started with an IPC channel, it ends with the process that started it, however that one ended.
  process.on('disconnect', () => onSignal());
  let options: ServeOptions;
  let daemon: Daemon;
  let log: Logger;
  try {
    options = serveOptions(flags, readConfig(flags.configPath));
    log = logger(process.env.LOG_LEVEL || options.config.log_level);
    daemon = await Daemon.start({ ...options, log }, starting.signal);
  } catch (error) {
    if (starting.signal.aborted) return EXIT.fine;
    process.stderr.write(`${error instanceof ConfigError ? `${error.message}.` : startSentence(error)}\n`);
    return EXIT.needsOwner;
  }
  await signalled;
  log.info({ event: 'stopping' }, 'provider is stopping');
  setTimeout(() => process.exit(1), options.drainMs + STOP_LIMIT_MS).unref();
  await daemon.stop(hurry.signal);
  log.info({ event: 'stopped' }, 'provider has stopped');
  return EXIT.fine;
}

/** JSON lines on standard output, written at once so that none is lost at exit. */
function logger(level: string): Logger {
  if (!LOG_LEVELS.some((known) => known === level)) throw new StartError(`LOG_LEVEL must be one of ${LOG_LEVELS.join(', ')}`);
  return pino({ level }, pino.destination({ dest: 1, sync: true }));
}
