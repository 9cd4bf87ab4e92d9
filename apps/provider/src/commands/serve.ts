/** `serve`: runs the daemon until a signal ends it. */
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { type Logger, pino } from 'pino';
import { Daemon } from '../daemon.js';
import type { ModelChoice } from '../open-models.js';
import { StartError, startSentence } from '../start-error.js';
import type { Command } from './command.js';
import { modelChoices } from './model-choices.js';
import { shelfOf } from './models/shared.js';

const SERVE_USAGE =
  'serve --coordinator URL --data-dir DIR [--model FILE.gguf[@KEEP]]... [--simulated-enclave] [--enrol] [--simulated-management URL] [--simulated-host DIR] [--slots N] [--context N] [--reserve GB] [--drain SECONDS]';

export const serveCommand: Command = {
  name: 'serve',
  summary: 'Serves models in the foreground until a signal ends it.',
  usage: SERVE_USAGE,
  run: serve,
};

/** Whatever still hangs this long after the jobs had their time is left to the system, in milliseconds. */
const STOP_LIMIT_MS = 4_000;
/** Time that running jobs get after a signal, in seconds. Where nothing else is set, launchd gives 20 in all. */
const DRAIN_SECONDS = 15;

interface ServeOptions {
  readonly socketUrl: string;
  readonly dataDir: string;
  readonly models: readonly ModelChoice[];
  readonly simulatedEnclave: boolean;
  readonly enrol: boolean;
  readonly simulatedManagement: string | null;
  readonly slots: number | null;
  readonly context: number | null;
  readonly simulatedHost: string | null;
  readonly drainMs: number;
  readonly reserve: number | null;
}

/** Resolves with the exit code of the process. */
async function serve(args: readonly string[]): Promise<number> {
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
    log = logger(process.env.LOG_LEVEL || 'info');
    options = readOptions(args);
    daemon = await Daemon.start({ ...options, log }, starting.signal);
  } catch (error) {
    if (starting.signal.aborted) return 0;
    process.stderr.write(`${startSentence(error)}\n`);
    return 1;
  }
  await signalled;
  log.info({ event: 'stopping' }, 'provider is stopping');
  setTimeout(() => process.exit(1), options.drainMs + STOP_LIMIT_MS).unref();
  await daemon.stop(hurry.signal);
  log.info({ event: 'stopped' }, 'provider has stopped');
  return 0;
}

/** JSON lines on standard output, written at once so that none is lost at exit. */
function logger(level: string): Logger {
  const levels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'];
  if (!levels.includes(level)) throw new StartError(`LOG_LEVEL must be one of ${levels.join(', ')}`);
  return pino({ level }, pino.destination({ dest: 1, sync: true }));
}

/** Throws {@link StartError}. */
function readOptions(args: readonly string[]): ServeOptions {
  const values = parse(args);
  if (values.coordinator === undefined) throw new StartError(`--coordinator is missing: ${SERVE_USAGE}`);
  if (values['data-dir'] === undefined) throw new StartError(`--data-dir is missing: ${SERVE_USAGE}`);
  return {
    socketUrl: socketUrl(values.coordinator),
    dataDir: resolve(values['data-dir']),
    models: modelChoices(values.model, shelfOf(resolve(values['data-dir'])).library),
    simulatedEnclave: values['simulated-enclave'] ?? false,
    enrol: (values.enrol ?? false) || values['simulated-management'] !== undefined,
    simulatedManagement: simulatedManagement(values['simulated-management'], values['simulated-enclave'] ?? false),
    slots: whole('--slots', values.slots, 1, 256),
    context: whole('--context', values.context, 256, 1 << 24),
    simulatedHost: simulatedHost(values['simulated-host'], values['simulated-enclave'] ?? false),
    drainMs: 1000 * (whole('--drain', values.drain, 0, 3600) ?? DRAIN_SECONDS),
    reserve: gigabytes('--reserve', values.reserve),
  };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        coordinator: { type: 'string' },
        'data-dir': { type: 'string' },
        model: { type: 'string', multiple: true },
        'simulated-enclave': { type: 'boolean' },
        enrol: { type: 'boolean' },
        'simulated-management': { type: 'string' },
        'simulated-host': { type: 'string' },
        slots: { type: 'string' },
        context: { type: 'string' },
        drain: { type: 'string' },
        reserve: { type: 'string' },
      },
    }).values;
  } catch (error) {
    throw new StartError(`the command line is not valid: ${error instanceof Error ? error.message : ''}`);
  }
}

function gigabytes(name: string, text: string | undefined): number | null {
  if (text === undefined) return null;
  const value = Number(text);
  if (!/^\d+(?:\.\d+)?$/.test(text) || value > 4096) throw new StartError(`${name} must be a number of gigabytes, such as 8`);
  return value * 1e9;
}

function socketUrl(coordinator: string): string {
  const url = URL.canParse(coordinator) ? new URL(coordinator) : null;
  const scheme = { 'http:': 'ws:', 'https:': 'wss:', 'ws:': 'ws:', 'wss:': 'wss:' }[url?.protocol ?? ''];
  if (url === null || scheme === undefined) throw new StartError('--coordinator must be an http or https address');
  return `${scheme}//${url.host}${url.pathname.replace(/\/+$/, '')}/provider/v1/socket`;
}

function simulatedManagement(text: string | undefined, simulatedEnclave: boolean): string | null {
  if (text === undefined) return null;
  if (!simulatedEnclave) throw new StartError('--simulated-management is for a provider with --simulated-enclave');
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol))
    throw new StartError('--simulated-management must be an http or https address');
  return text.replace(/\/+$/, '');
}

function simulatedHost(folder: string | undefined, simulatedEnclave: boolean): string | null {
  if (folder === undefined) return null;
  if (!simulatedEnclave) throw new StartError('--simulated-host is for a provider with --simulated-enclave');
  return resolve(folder);
}

function whole(name: string, text: string | undefined, least: number, most: number): number | null {
  if (text === undefined) return null;
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < least || value > most) throw new StartError(`${name} must be a whole number from ${least} to ${most}`);
  return value;
}
