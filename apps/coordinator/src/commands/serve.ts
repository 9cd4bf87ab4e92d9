/** `serve`: starts a coordinator. SIGTERM and SIGINT drain, then end the process. */
import { destination } from 'pino';
import { startApp } from '../app.js';
import { createLog, errorFacts } from '../log.js';
import { type Command, type CommandContext, EXIT, optionsOf } from './command.js';
import { settingsOf } from './read-settings.js';

/** Maximum delay of a log line before it reaches standard output, in milliseconds. */
const LOG_FLUSH_MS = 100;
/** Maximum time to write the rest of the log after everything else is closed, in milliseconds. */
const LAST_FLUSH_MS = 2000;
/** Time after the grace period until the process is killed, whatever hangs, in milliseconds. */
const LAST_RESORT_MS = 5000;

/** Meaning of `MIN_TRUST_LEVEL` for clients, for the log. */
const TRUST_IN_FORCE = {
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
  // Lines are buffered; every exit below flushes the buffer.
  const stdout = destination({ fd: 1, sync: false, minLength: 8 * 1024, periodicFlush: LOG_FLUSH_MS });
  const log = createLog(config.logLevel, stdout);
  const app = await startApp({ config, log });
  log.info({ address: app.address }, 'listening');
  log.info(
    { min_trust_level: config.minTrustLevel, allow_simulated_enclave: config.allowSimulatedEnclave },
    TRUST_IN_FORCE[config.minTrustLevel],
  );
  // A parent process with an IPC channel gets the address at any log level.
  process.send?.({ address: app.address });

  const skipGrace = new AbortController();
  const signalled = new Set<string>();
  let isEnding = false;
  return new Promise((resolve) => {
    const exitAfterFlush = (code: number): void => {
      // `flushSync` would retry forever on a pipe without reader. A slow reader has LAST_FLUSH_MS.
      setTimeout(() => process.kill(process.pid, 'SIGKILL'), LAST_FLUSH_MS);
      stdout.flush(() => resolve(code));
    };
    const end = (reason: string): void => {
      if (isEnding) return;
      isEnding = true;
      log.info({ reason }, 'shutting down');
      setTimeout(() => exitAfterFlush(EXIT.problem), config.drainMs + LAST_RESORT_MS).unref();
      app.close(config.drainMs, skipGrace.signal).then(
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
    // A repeated signal ends the grace period. SIGINT and SIGTERM together, of a terminal and a supervisor, are one request.
    const onSignal = (signal: string): void => {
      if (skipGrace.signal.aborted) exitAfterFlush(EXIT.problem);
      if (signalled.has(signal)) {
        log.info({ reason: signal }, 'no longer waiting for running jobs');
        setTimeout(() => exitAfterFlush(EXIT.problem), LAST_RESORT_MS).unref();
        skipGrace.abort();
      }
      signalled.add(signal);
      end(signal);
    };
    process.on('SIGTERM', onSignal);
    process.on('SIGINT', onSignal);
    // With an IPC channel, the coordinator ends when the parent process ends.
    process.on('disconnect', () => end('parent exited'));
    process.on('uncaughtException', (error) => {
      log.fatal({ error: errorFacts(error) }, 'crashed');
      exitAfterFlush(EXIT.problem);
    });
  });
}
