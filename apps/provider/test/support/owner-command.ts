/** Runs `inference-provider` commands as processes, and creates a daemon status for tests of commands. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { DaemonStatus } from '../../src/control/daemon-status.js';
import { startingStatus } from '../../src/daemon/status.js';

export const MAIN = fileURLToPath(new URL('../../dist/main.js', import.meta.url));

/** Runs a command without a terminal on a data directory. */
export function runCommand(dataDir: string, ...args: readonly string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [MAIN, ...args, '--data-dir', dataDir], (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
    );
  });
}

/** Status of a connected daemon that serves `pico-demo`. */
export function runningStatus(dataDir: string, changes: Partial<DaemonStatus> = {}): DaemonStatus {
  const options = { dataDir, socketUrl: 'ws://gateway.example/provider/v1/socket', simulatedEnclave: true, models: [] };
  return {
    ...startingStatus(options, Date.now()),
    state: 'running',
    engine: 'ready',
    connection: { state: 'connected', since: Date.now(), problem: null, retry_at: null },
    availability: { state: 'serving', reasons: [], next_change_at: null, pause: null, keeps_awake: false },
    trust: { type: 'trust', trust_level: 'self_signed', routable: true, status: 'online', parts: [] },
    models: [{ id: 'pico-demo', context_length: 2048 }],
    ...changes,
  };
}
