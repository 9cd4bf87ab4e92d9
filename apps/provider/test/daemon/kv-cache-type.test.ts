/** `serve --kv-cache-type q8_0` with two models, one of which has heads too small for the blocks of q8_0. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runProgram } from '../../../../test/support/program.js';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { requestStatus } from '../../src/control/control-client.js';
import { demoModel } from '../demo-model.js';
import { FakeCoordinator } from '../support/fake-coordinator.js';
import { ProviderProcess } from '../support/provider-process.js';

const dir = temporaryDirectory('kv-cache-type');

test('status and log show the type of each model', async () => {
  const narrow = join(dir, 'narrow.gguf');
  await runProgram('scripts/make-model.ts', ['--out', narrow, '--dim', '64', '--heads', '4', '--kv-heads', '4', '--name', 'Narrow']);
  const dataDir = join(dir, 'data');
  const coordinator = await FakeCoordinator.listen();
  const models = ['--model', demoModel(), '--model', `${narrow}@on_demand`, '--context', '512', '--slots', '1'];
  const provider = ProviderProcess.start(coordinator.url, ['--simulated-enclave', '--kv-cache-type', 'q8_0', ...models], dataDir);
  try {
    const session = await provider.whileItRuns(coordinator.session());
    await session.admit();
    await provider.logged('registered');
    const { models: served } = await requestStatus(dataDir, 10_000);
    expect(served).toMatchObject([{ kv_cache_type: 'q8_0' }, { id: 'narrow', kv_cache_type: 'f16' }]);
    expect(provider.log().filter(({ event }) => event === 'kv_cache_type')).toMatchObject([{ model: 'narrow', kv_cache_type: 'f16' }]);
  } finally {
    await provider.dispose();
    await coordinator.close();
  }
});
