/** The whole program before coordinators of different versions: which receipts it signs, and what those of version 2 say. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { afterEach, expect, test } from 'vitest';
import { readGgufHeader } from '../src/models/gguf-header.js';
import { demoModel } from './demo-model.js';
import { FakeCoordinator } from './support/fake-coordinator.js';
import { ProviderProcess } from './support/provider-process.js';

let coordinator: FakeCoordinator;
let provider: ProviderProcess;
afterEach(async () => {
  await provider.dispose();
  await coordinator.close();
});

const context = { model: 'pico-demo' };
const chat = { model: 'pico-demo', messages: [{ role: 'user', content: 'What is the capital of France?' }] };
const sha256 = (bytes: string | Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

test.each([undefined, [2, 1]])('with a coordinator that takes receipts %j', async (receipts) => {
  coordinator = await FakeCoordinator.listen(receipts === undefined ? {} : { receipts });
  provider = ProviderProcess.start(coordinator.url, ['--simulated-enclave', '--context', '1024']);
  const session = await coordinator.session();
  const register = await session.admit();
  expect(register.models[0]).toMatchObject({ thinks: true });
  // The hash of the file is told once it is computed.
  for (let offer = register.models[0]; offer?.file_sha256 === undefined; ) [offer] = (await session.next('models')).models;
  const drawn = { temperature: 0.7, top_p: 0.9, top_k: 40, seed: 7, frequency_penalty: -0.5, presence_penalty: 0 };
  const { receipt } = await session.submit({ ...chat, ...drawn }, { context });
  expect(register.receipt_version).toBe(receipts === undefined ? undefined : 2);
  if (receipts === undefined) {
    expect(receipt?.v).toBe(1);
    for (const member of ['engine', 'weights_sha256', 'template_sha256', 'sampling']) expect(receipt).not.toHaveProperty(member);
    return;
  }
  const template = readGgufHeader(demoModel()).values.get('tokenizer.chat_template');
  expect(receipt).toMatchObject({
    v: 2,
    engine: expect.stringMatching(/^llama\.cpp \S+ cpu$/),
    weights_sha256: sha256(readFileSync(demoModel())),
    template_sha256: sha256(String(template)),
    sampling: { temperature: '0.7', top_p: '0.9', top_k: '40', seed: '7', frequency_penalty: '-0.5' },
  });
  expect(receipt?.sampling).not.toHaveProperty('presence_penalty');
  const text = await session.submit(
    { model: 'pico-demo', prompt: 'Once', max_tokens: 4, temperature: 0 },
    { context: { ...context, endpoint: '/v1/completions', max_tokens: 4, overrides: {} } },
  );
  expect(text.receipt).toMatchObject({ v: 2, sampling: { temperature: '0' } });
  expect(text.receipt).not.toHaveProperty('template_sha256');
});
