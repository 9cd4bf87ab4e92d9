/**
 * `serve`: runs the daemon in the foreground until a signal, the command `stop`, or the end of a parent process with an IPC channel.
 *
 * Service managers run it with `--service`. It then also ends for an update.
 */
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { type Logger, pino } from 'pino';
import { type Config, LOG_LEVELS } from '../config/config.js';
import { ConfigError, readConfig } from '../config/read-config.js';
import { Daemon } from '../daemon/daemon.js';
import { inspectorProblem, refuseInspectorSignal } from '../host/hardening/inspector.js';
import { logFile, trimOutput } from '../log/log-files.js';
import { logLineText } from '../log/log-line.js';
import { RotatingFile } from '../log/rotating-file.js';
import { StartupError, startupErrorText } from '../startup-error.js';
import { EXIT } from './exit-codes.js';
import { readServeFlags, type ServeFlags, type ServeOptions, serveOptions } from './input/serve-options.js';

/** Time after the drain for the rest of the shutdown. After that, the process exits anyway. */
const STOP_LIMIT_MS = 4_000;

/** Exit code that requests a restart from the service manager (EX_TEMPFAIL, sysexits.h). */
const START_AGAIN = 75;

/** Resolves with the exit code. */
export async function serve(args: readonly string[]): Promise<number> {
  const flags = readServeFlags(args);
  if (flags.check) {
    const { socketUrl } = serveOptions(flags, readConfig(flags.configPath));
    process.stdout.write(`The settings are fine. The coordinator is ${new URL(socketUrl).host}.\n`);
    return EXIT.fine;
  }
  const shutdown = listenForShutdown();
  let startsAgain = false;
  const onRestart = (): void => {
    startsAgain = true;
    shutdown.request('update');
  };
  let options: ServeOptions;
  let daemon: Daemon;
  let log: Logger;
  const fixedLogLevel = process.env.LOG_LEVEL || null;
  try {
    const problem = inspectorProblem();
    if (problem !== null) throw new StartupError(problem);
    const config = readConfig(flags.configPath);
    options = serveOptions(flags, config);
    log = logger(fixedLogLevel ?? config.log_level, flags);
    refuseInspectorSignal(() => log.warn({ event: 'inspector_refused' }, 'a signal requested the debugger, which stays closed'));
    const runtime = {
      config,
      readConfig: () => checkedConfig(flags),
      modelSettingsOf: (now: Config) => serveOptions(flags, now),
      modelsAreNamed: flags.models !== undefined,
      fixedLogLevel,
      onStop: () => shutdown.request('control socket'),
      onRestart,
      service: flags.service,
      log,
    };
    daemon = await Daemon.start({ ...options, ...runtime }, shutdown.requested);
    // In a terminal, SIGHUP means that the terminal was closed, and ends the process. Otherwise it reloads the settings.
    if (!process.stdout.isTTY) process.on('SIGHUP', () => daemon.reload());
  } catch (error) {
    if (shutdown.requested.aborted) return EXIT.fine;
    process.stderr.write(`${error instanceof ConfigError ? `${error.message}.` : startupErrorText(error)}\n`);
    return EXIT.needsOwner;
  }
  await shutdown.whenRequested;
  log.info({ event: 'stopping' }, 'provider is stopping');
  setTimeout(() => process.exit(1), options.drainMs + STOP_LIMIT_MS).unref();
  await daemon.stop(shutdown.forced);
  log.info({ event: 'stopped' }, 'provider has stopped');
  return startsAgain ? START_AGAIN : EXIT.fine;
}

interface Shutdown {
  /** Aborted by the first request. */
  readonly requested: AbortSignal;
  readonly whenRequested: Promise<void>;
  /** Aborted by a repeated request of the same source. */
  readonly forced: AbortSignal;
  request(source: string): void;
}

function listenForShutdown(): Shutdown {
  const requested = new AbortController();
  const forced = new AbortController();
  const sources = new Set<string>();
  const whenRequested = new Promise<void>((resolve) => requested.signal.addEventListener('abort', () => resolve(), { once: true }));
  // SIGINT followed by SIGTERM does not force the shutdown, because a terminal and a supervisor may send both at once.
  const request = (source: string): void => {
    if (sources.has(source)) forced.abort();
    sources.add(source);
    requested.abort();
  };
  process.on('SIGINT', request);
  process.on('SIGTERM', request);
  // With an IPC channel, the daemon ends with its parent process.
  process.on('disconnect', () => request('disconnect'));
  return { requested: requested.signal, whenRequested, forced: forced.signal, request };
}

/** Throws if the daemon could not start with the settings. */
function checkedConfig(flags: ServeFlags): Config {
  const config = readConfig(flags.configPath);
  serveOptions(flags, config);
  return config;
}

/** Logs to stdout, or as a service to the data directory. Writes are synchronous, so that no line is lost at exit. */
function logger(level: string, { service, dataDir }: ServeFlags): Logger {
  if (!LOG_LEVELS.some((known) => known === level)) throw new StartupError(`LOG_LEVEL must be one of ${LOG_LEVELS.join(', ')}`);
  if (!service && process.stdout.isTTY)
    return pino({ level }, { write: (line) => process.stdout.write(`${logLineText(line.trimEnd())}\n`) });
  if (!service) return pino({ level }, pino.destination({ dest: 1, sync: true }));
  try {
    mkdirSync(dirname(logFile(dataDir)), { recursive: true, mode: 0o700 });
    trimOutput(dataDir);
    return pino({ level }, new RotatingFile({ path: logFile(dataDir) }));
  } catch (error) {
    throw new StartupError(`the log ${logFile(dataDir)} cannot be written (${(error as NodeJS.ErrnoException).code})`);
  }
}
