import { expect, it } from 'vitest';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { stopOverSocket } from '../../src/cli/commands/stop.js';
import { ControlServer } from '../../src/control/control-server.js';
import { controlRoutes } from '../../src/control/routes.js';
import { startingStatus } from '../../src/daemon/status.js';

const SECOND_MS = 1000;

/** A daemon whose jobs take this long, with a clock that each look advances by five seconds. */
async function stop(drainMs: number, jobsMs: number): Promise<void> {
  const dataDir = temporaryDirectory('stop');
  const facts = { dataDir, socketUrl: 'wss://gateway.example/provider/v1/socket', simulatedEnclave: true, models: [{ path: '/m.gguf' }] };
  const routes = controlRoutes({
    status: async () => startingStatus(facts, 1),
    enclave: async () => ({ usable: false, kind: null, problem: '' }),
    reload: async () => startingStatus(facts, 1).settings,
    stop: async () => ({ drain_ms: drainMs }),
  });
  const server = await ControlServer.open(dataDir, routes);
  let now = 0;
  let isClosed = false;
  try {
    await stopOverSocket(dataDir, process.pid, {
      now: () => now,
      wait: async () => {
        now += 5 * SECOND_MS;
        if (now < jobsMs || isClosed) return;
        isClosed = true;
        await server.close();
      },
    });
  } finally {
    if (!isClosed) await server.close();
  }
}

it('waits for the jobs of a daemon that was started with a longer drain', async () => {
  await expect(stop(600 * SECOND_MS, 590 * SECOND_MS)).resolves.toBeUndefined();
});

it('reports a daemon that does not stop in its time', async () => {
  await expect(stop(15 * SECOND_MS, 600 * SECOND_MS)).rejects.toThrow(`(process ${process.pid}) did not stop in time`);
});
