/** A daemon whose last part cannot be created. */
import { join } from 'node:path';
import { pino } from 'pino';
import { expect, it } from 'vitest';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { DEFAULTS } from '../../src/config/config.js';
import { Daemon } from '../../src/daemon/daemon.js';
import { demoModel } from '../demo-model.js';
import { childrenOf } from '../support/provider-process.js';

it('ends the parts that had started', async () => {
  const log = pino({ level: 'silent' });
  const full = Object.assign(Object.create(log), {
    info: ({ event }: { event: string }) => {
      if (event === 'starting') throw new Error('the disk is full');
    },
  });
  const before = childrenOf(process.pid).length;
  const models = [{ path: demoModel(), keep: { kind: 'on_demand' } as const }];
  const start = Daemon.start(
    {
      socketUrl: 'ws://127.0.0.1:1',
      dataDir: join(temporaryDirectory('failed-start'), 'data'),
      models,
      simulatedEnclave: true,
      enrol: false,
      simulatedManagement: null,
      slots: 1,
      context: 512,
      kvCacheType: 'f16',
      simulatedHost: null,
      drainMs: 0,
      reserve: 0,
      config: DEFAULTS,
      readConfig: () => DEFAULTS,
      modelSettingsOf: () => ({ models, reserve: 0 }),
      modelsAreNamed: true,
      fixedLogLevel: null,
      onStop: () => {},
      onRestart: () => {},
      service: false,
      log: full,
    },
    new AbortController().signal,
  );
  await expect(start).rejects.toThrow('the disk is full');
  expect(childrenOf(process.pid)).toHaveLength(before);
});
