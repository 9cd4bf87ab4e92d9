/** Entry file of the coordinator. SIGTERM and SIGINT drain, then end the process. */
import { destination } from 'pino';
import { startApp } from './app.js';
import { readConfig } from './config/config.js';
import { StartupError } from './config/startup-error.js';
import { createLog, errorFacts } from './log.js';

const USAGE = `usage: node main.js [--help]

Starts a coordinator. All settings are environment variables, such as PORT and DATA_DIR;
docs/operating.md lists them.
`;

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

async function main(args: readonly string[]): Promise<void> {
  if (args.length > 0) {
    const isHelp = args.every((arg) => arg === '--help' || arg === '-h');
    (isHelp ? process.stdout : process.stderr).write(isHelp ? USAGE : `The coordinator takes no argument ${args[0]}.\n${USAGE}`);
    process.exitCode = isHelp ? 0 : 2;
    return;
  }
  const config = readConfig(process.env);
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
  const exitAfterFlush = (code: number): void => {
    // `flushSync` would retry forever on a pipe without reader. A slow reader has LAST_FLUSH_MS.
    setTimeout(() => process.kill(process.pid, 'SIGKILL'), LAST_FLUSH_MS);
    stdout.flush(() => process.exit(code));
  };
  const end = (reason: string): void => {
    if (isEnding) return;
    isEnding = true;
    log.info({ reason }, 'shutting down');
    setTimeout(() => exitAfterFlush(1), config.drainMs + LAST_RESORT_MS).unref();
    app.close(config.drainMs, skipGrace.signal).then(
      () => {
        log.info('closed');
        exitAfterFlush(0);
      },
      (error: unknown) => {
        log.fatal({ error: errorFacts(error) }, 'shutdown failed');
        exitAfterFlush(1);
      },
    );
  };
  // A repeated signal ends the grace period. SIGINT and SIGTERM together, of a terminal and a supervisor, are one request.
  const onSignal = (signal: string): void => {
    if (skipGrace.signal.aborted) exitAfterFlush(1);
    if (signalled.has(signal)) {
      log.info({ reason: signal }, 'no longer waiting for running jobs');
      setTimeout(() => exitAfterFlush(1), LAST_RESORT_MS).unref();
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
    exitAfterFlush(1);
  });
}

main(process.argv.slice(2)).catch((error: unknown) => {
  // Only StartupError messages are printed; other messages could quote secrets.
  process.stderr.write(`${error instanceof StartupError ? error.message : `The coordinator cannot start: ${errorFacts(error).name}.`}\n`);
  process.exit(1);
});
