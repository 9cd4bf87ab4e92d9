/** `serve`: runs the daemon until a signal ends it. */
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { type Logger, pino } from 'pino';
import { Daemon } from '../daemon.js';
import { StartError, startSentence } from '../start-error.js';

export const SERVE_USAGE = 'serve --coordinator URL --data-dir DIR [--model FILE.gguf] [--simulated-enclave] [--slots N] [--context N]';

const DEMO_MODEL = fileURLToPath(new URL('../../demo-models/pico/pico.gguf', import.meta.url));
/** Whatever still hangs this long after a signal is left to the system, in milliseconds. */
const STOP_LIMIT_MS = 10_000;

interface ServeOptions {
  readonly socketUrl: string;
  readonly dataDir: string;
  readonly modelPath: string;
  readonly simulatedEnclave: boolean;
  readonly slots: number | null;
  readonly context: number | null;
}

/** Resolves with the exit code of the process. */
export async function serve(args: readonly string[]): Promise<number> {
  const starting = new AbortController();
  let interrupted: (() => void) | null = null;
  const signalled = new Promise<void>((done) => (interrupted = done));
  const onSignal = () => {
    starting.abort();
    interrupted?.();
  };
  process.on('SIGINT', onSignal);
  process.on('SIGTERM', onSignal);
  // Started with an IPC channel, it ends with the process that started it, however that one ended.
  process.on('disconnect', onSignal);
  let daemon: Daemon;
  let log: Logger;
  try {
    log = logger(process.env.LOG_LEVEL || 'info');
    daemon = await Daemon.start({ ...readOptions(args), log }, starting.signal);
  } catch (error) {
    if (starting.signal.aborted) return 0;
    process.stderr.write(`${startSentence(error)}\n`);
    return 1;
  }
  await signalled;
  log.info({ event: 'stopping' }, 'provider is stopping');
  setTimeout(() => process.exit(1), STOP_LIMIT_MS).unref();
  await daemon.stop();
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
export function readOptions(args: readonly string[]): ServeOptions {
  const values = parse(args);
  if (values.coordinator === undefined) throw new StartError(`--coordinator is missing: ${SERVE_USAGE}`);
  if (values['data-dir'] === undefined) throw new StartError(`--data-dir is missing: ${SERVE_USAGE}`);
  return {
    socketUrl: socketUrl(values.coordinator),
    dataDir: resolve(values['data-dir']),
    modelPath: values.model === undefined ? DEMO_MODEL : resolve(values.model),
    simulatedEnclave: values['simulated-enclave'] ?? false,
    slots: whole('--slots', values.slots, 1, 256),
    context: whole('--context', values.context, 256, 1 << 24),
  };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        coordinator: { type: 'string' },
        'data-dir': { type: 'string' },
        model: { type: 'string' },
        'simulated-enclave': { type: 'boolean' },
        slots: { type: 'string' },
        context: { type: 'string' },
      },
    }).values;
  } catch (error) {
    throw new StartError(`the command line is not valid: ${error instanceof Error ? error.message : ''}`);
  }
}

function socketUrl(coordinator: string): string {
  const url = URL.canParse(coordinator) ? new URL(coordinator) : null;
  const scheme = { 'http:': 'ws:', 'https:': 'wss:', 'ws:': 'ws:', 'wss:': 'wss:' }[url?.protocol ?? ''];
  if (url === null || scheme === undefined) throw new StartError('--coordinator must be an http or https address');
  return `${scheme}//${url.host}${url.pathname.replace(/\/+$/, '')}/provider/v1/socket`;
}

function whole(name: string, text: string | undefined, least: number, most: number): number | null {
  if (text === undefined) return null;
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < least || value > most) throw new StartError(`${name} must be a whole number from ${least} to ${most}`);
  return value;
}
