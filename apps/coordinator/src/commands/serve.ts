/** `serve` command: runs a coordinator. On SIGTERM or SIGINT, running jobs may finish within DRAIN_SECONDS, then the process ends. */
import { destination } from 'pino';
import type { App } from '../app.js';
import { withSecretFiles } from '../config/secret-files.js';
import { createLog, errorFacts, type Log } from '../log.js';
import { type Command, type CommandContext, EXIT, optionsOf } from './command.js';
import { settingsOf } from './read-settings.js';

/** Maximum delay of a log line before it reaches standard output. */
const LOG_FLUSH_MS = 100;
/** Maximum time for the last flush of the log, after everything else is closed. */
const LAST_FLUSH_MS = 2000;
/** Time after `config.drainMs` until a stuck shutdown is forced. */
const FORCED_EXIT_MS = 5000;

const TRUST_MESSAGES = {
  hardware: 'only providers of trust level hardware get requests',
  self_signed: 'providers get requests from trust level self_signed on: their hardware is not proved',
} as const;

export const serveCommand: Command = {
  usage: `serve [--env-file FILE]

Applies pending migrations (unless MIGRATE_ON_START is 0), listens at HOST and PORT, and logs to standard output until SIGTERM or SIGINT.
Exit codes: 0 shut down, 1 the start or the shutdown failed, 2 a setting cannot be used.`,
  run: serve,
};

async function serve(args: readonly string[], { env }: CommandContext): Promise<number> {
  optionsOf(args, {});
  const config = settingsOf(env);
  // OpenTelemetry's packages read this variable themselves, but not the `_FILE` form.
  const { OTEL_EXPORTER_OTLP_HEADERS: traceHeaders } = withSecretFiles(env);
  if (traceHeaders !== undefined) process.env.OTEL_EXPORTER_OTLP_HEADERS = traceHeaders;
  // Lines are buffered. Every exit below flushes the buffer.
  const stdout = destination({ fd: 1, sync: false, minLength: 8 * 1024, periodicFlush: LOG_FLUSH_MS });
  const log = createLog(config.logLevel, stdout);
  // Imported once the settings are valid: most of the program, which `--help` and a wrong setting do not need.
  const { startApp } = await import('../app.js');
  const app = await startApp({ config, log });
  log.info({ address: app.address }, 'listening');
  log.info(
    { min_trust_level: config.minTrustLevel, allow_simulated_enclave: config.allowSimulatedEnclave },
    TRUST_MESSAGES[config.minTrustLevel],
  );
  // Sends the address to a parent process with an IPC channel, at every log level.
  process.send?.({ address: app.address });
  return exitCodeAtShutdown({ app, log, stdout, drainMs: config.drainMs });
}

interface RunningCoordinator {
  readonly app: App;
  readonly log: Log;
  readonly stdout: ReturnType<typeof destination>;
  readonly drainMs: number;
}

/** Shuts down after a signal or the end of the parent process. Resolves to the exit code after the shutdown, or after a crash. */
function exitCodeAtShutdown({ app, log, stdout, drainMs }: RunningCoordinator): Promise<number> {
  const skipDrain = new AbortController();
  const signalled = new Set<string>();
  let isEnding = false;
  return new Promise((resolve) => {
    const exitAfterFlush = (code: number): void => {
      // Not `flushSync`, which retries forever on a full pipe that nobody reads. The kill limits the asynchronous flush.
      setTimeout(() => process.kill(process.pid, 'SIGKILL'), LAST_FLUSH_MS);
      stdout.flush(() => resolve(code));
    };
    const end = (reason: string): void => {
      if (isEnding) return;
      isEnding = true;
      log.info({ reason }, 'shutting down');
      setTimeout(() => exitAfterFlush(EXIT.problem), drainMs + FORCED_EXIT_MS).unref();
      app.close(drainMs, skipDrain.signal).then(
        () => {
          log.info('closed');
          exitAfterFlush(EXIT.ok);
        },
        (error: unknown) => {
          log.fatal({ error: errorFacts(error) }, 'shutdown failed');
          exitAfterFlush(EXIT.problem);
        },
      );
    };
    // The same signal again skips the rest of the drain. The other signal does not: a terminal and a supervisor may each send one.
    // After that, any signal exits at once.
    const onSignal = (signal: string): void => {
      if (skipDrain.signal.aborted) exitAfterFlush(EXIT.problem);
      if (signalled.has(signal)) {
        log.info({ reason: signal }, 'no longer waiting for running jobs');
        setTimeout(() => exitAfterFlush(EXIT.problem), FORCED_EXIT_MS).unref();
        skipDrain.abort();
      }
      signalled.add(signal);
      end(signal);
    };
    process.on('SIGTERM', onSignal);
    process.on('SIGINT', onSignal);
    // Emitted only with an IPC channel, when the parent process ends.
    process.on('disconnect', () => end('parent exited'));
    process.on('uncaughtException', (error) => {
      log.fatal({ error: errorFacts(error) }, 'crashed');
      exitAfterFlush(EXIT.problem);
    });
  });
}
