/** Failed starts: one sentence on stderr and exit code 1. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { FakeCoordinator } from '../support/fake-coordinator.js';
import { childrenOf, isAlive, ProviderProcess } from '../support/provider-process.js';

const dir = temporaryDirectory('start');
const damaged = join(dir, 'damaged.gguf');
writeFileSync(damaged, 'GGUF and then nothing of any use');
const text = join(dir, 'text.gguf');
writeFileSync(text, 'this is no model');
const file = join(dir, 'file');
writeFileSync(file, '');

test.each<[string, string, string[], string | undefined, RegExp]>([
  ['a damaged model', 'http://127.0.0.1:1', ['--simulated-enclave', '--model', damaged], undefined, /damaged/],
  ['a file that is no model', 'http://127.0.0.1:1', ['--simulated-enclave', '--model', text], undefined, /GGUF/],
  ['a model that is not there', 'http://127.0.0.1:1', ['--simulated-enclave', '--model', join(dir, 'no.gguf')], undefined, /no model file/],
  ['no enclave', 'http://127.0.0.1:1', [], undefined, /Secure Enclave|enclave helper/],
  ['a model that does not fit', 'http://127.0.0.1:1', ['--simulated-enclave', '--reserve', '4096'], undefined, /needs .* of memory/],
  ['a data directory that is a file', 'http://127.0.0.1:1', ['--simulated-enclave'], file, /data directory .* cannot be written/],
])('%s', async (_what, coordinator, args, dataDir, sentence) => {
  const provider = ProviderProcess.start(coordinator, args, dataDir ?? join(dir, 'data'));
  expect(await provider.exit).toEqual({ code: 1, signal: null });
  expect(provider.stderr).toMatch(sentence);
  expect(provider.stderr.trim().split('\n')).toHaveLength(1);
  expect(provider.stderr).toMatch(/^[A-Z-].*\.\n$/);
  expect(provider.log()).toEqual([]);
});

test.each<[string, string, string[], RegExp]>([
  ['an address that is none', 'somewhere', ['--simulated-enclave'], /--coordinator must be/],
  ['a number that is none', 'http://127.0.0.1:1', ['--simulated-enclave', '--slots', 'many'], /--slots must be/],
  ['a KV cache type that is none', 'http://127.0.0.1:1', ['--simulated-enclave', '--kv-cache-type', 'q4_0'], /--kv-cache-type must be/],
  ['a reserve that is none', 'http://127.0.0.1:1', ['--simulated-enclave', '--reserve', 'much'], /--reserve must be/],
  ['an option it does not know', 'http://127.0.0.1:1', ['--modle', 'x'], /no option --modle \(did you mean --model\?\)/],
])('wrong use, exit code 2: %s', async (_what, coordinator, args, sentence) => {
  const provider = ProviderProcess.start(coordinator, args, join(dir, 'data'));
  expect(await provider.exit).toEqual({ code: 2, signal: null });
  expect(provider.stderr).toMatch(sentence);
  expect(provider.stderr).toMatch(/^[A-Z-].*\.\n`inference-provider serve --help` lists the options\.\n$/);
  expect(provider.log()).toEqual([]);
});

test('engine and helper end with a killed daemon', async () => {
  const coordinator = await FakeCoordinator.listen();
  const provider = ProviderProcess.start(coordinator.url);
  await (await coordinator.session()).admit();
  const children = childrenOf(provider.child.pid ?? 0);
  expect(children.length).toBeGreaterThanOrEqual(2);
  provider.child.kill('SIGKILL');
  await provider.exit;
  await expect.poll(() => children.filter(({ pid }) => isAlive(pid))).toEqual([]);
  await provider.dispose();
  await coordinator.close();
});

test('a signal while the model loads ends the program without a trace', async () => {
  const provider = ProviderProcess.start('http://127.0.0.1:1');
  while (childrenOf(provider.child.pid ?? 0).length === 0 && provider.child.exitCode === null) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  const children = childrenOf(provider.child.pid ?? 0);
  provider.child.kill('SIGTERM');
  expect(await provider.exit).toEqual({ code: 0, signal: null });
  await expect.poll(() => children.filter(({ pid }) => isAlive(pid))).toEqual([]);
  expect(provider.stderr).toBe('');
  await provider.dispose();
});
