/** The coordinator as a program: environment in, one log line when it listens, a clean end on SIGTERM and SIGINT. */
import { destination } from 'pino';
import { startApp } from './app.js';
import { readConfig } from './config/config.js';
import { StartupError } from './config/startup-error.js';
import { createLog, errorFacts } from './log.js';

/** A line reaches standard output after this long at most, in milliseconds. */
const LOG_FLUSH_MS = 100;
/** All else is closed when what is left of the log is written; it takes this long at most, in milliseconds. */
const LAST_FLUSH_MS = 2000;
/** Whatever hangs, the process is gone this long after its jobs had their time, in milliseconds. */
const LAST_RESORT_MS = 5000;

/** What `MIN_TRUST_LEVEL` means for clients, for the log. */
const TRUST_IN_FORCE = {
  hardware: 'machines get requests only at trust level hardware',
  self_signed: 'machines get requests at trust level self_signed: their hardware is not proved',
} as const;

async function main(): Promise<void> {
  const config = readConfig(process.env);
  // Lines are gathered for a moment; every way out below writes what is left.
  const stdout = destination({ fd: 1, sync: false, minLength: 8 * 1024, periodicFlush: LOG_FLUSH_MS });
  const log = createLog(config.logLevel, stdout);
  const app = await startApp({ config, log });
  log.info({ address: app.address }, 'listening');
  log.info(
    { min_trust_level: config.minTrustLevel, allow_simulated_enclave: config.allowSimulatedEnclave },
    TRUST_IN_FORCE[config.minTrustLevel],
  );
  // Whoever started it over an IPC channel hears the address whatever the log level.
  process.send?.({ address: app.address });

  const hurry = new AbortController();
  const signalled = new Set<string>();
  let ending = false;
  const leave = (code: number): void => {
    // Not with flushSync, which tries for ever to write into a pipe whose reader is gone. One that merely does not read has a moment.
    setTimeout(() => process.kill(process.pid, 'SIGKILL'), LAST_FLUSH_MS);
    stdout.flush(() => process.exit(code));
  };
  const end = (reason: string): void => {
    if (ending) return;
    ending = true;
    log.info({ reason }, 'shutting down');
    setTimeout(() => leave(1), config.drainMs + LAST_RESORT_MS).unref();
    app.close(config.drainMs, hurry.signal).then(
      () => {
        log.info('closed');
        leave(0);
      },
      (error: unknown) => {
        log.fatal({ error: errorFacts(error) }, 'shutdown failed');
        leave(1);
      },
    );
  };
  // The same signal again means: now. A terminal's SIGINT and then a supervisor's SIGTERM are one wish that came two ways.
  const onSignal = (signal: string): void => {
    if (hurry.signal.aborted) leave(1);
    if (signalled.has(signal)) {
      log.info({ reason: signal }, 'not waiting for running jobs any more');
      setTimeout(() => leave(1), LAST_RESORT_MS).unref();
      hurry.abort();
    }
    signalled.add(signal);
    end(signal);
  };
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);
  // Started with an IPC channel, it ends with the process that started it, however that one ended.
  process.on('disconnect', () => end('parent gone'));
  process.on('uncaughtException', (error) => {
    log.fatal({ error: errorFacts(error) }, 'crashed');
    leave(1);
  });
}

main().catch((error: unknown) => {
  // Only sentences made for people are printed; anything else could quote what it must not.
  process.stderr.write(`${error instanceof StartupError ? error.message : `The coordinator cannot start: ${errorFacts(error).name}.`}\n`);
  process.exit(1);
});
