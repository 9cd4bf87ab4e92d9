/** `scripts/verify-response.sh` uses none of our code: curl fetches a response, and openssl verifies the response. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { DemoNetwork } from './support/demo-network.js';
import { ROOT } from './support/npm-start.js';
import { runCommand } from './support/run-command.js';
import { failuresOfSharedNetwork, sharedNetwork } from './support/shared-network.js';
import { otherModelsFirst, startTamperingProxy } from './support/tampering-proxy.js';
import { temporaryDirectory } from './support/temporary-directory.js';

let network: DemoNetwork;
let saved: string;

beforeAll(async () => {
  network = await sharedNetwork();
  saved = temporaryDirectory('inference-verify');
});
afterAll(() => expect(failuresOfSharedNetwork()).toEqual([]));

const verify = (...args: string[]) => runCommand(join(ROOT, 'scripts/verify-response.sh'), args);

const access = (): string[] => ['--base-url', network.baseUrl, '--key', network.apiKey, '--model', network.model];

describe('scripts/verify-response.sh', () => {
  it.each([['a plain answer'], ['a streamed answer', '--stream']])('verifies %s', async (_, ...mode) => {
    const { code, output } = await verify(...access(), ...mode);
    expect(output).toMatch(/^verified/m);
    expect(code).toBe(0);
  });

  it.each([['a plain answer'], ['a streamed answer', '--stream']])('fails on one flipped byte of %s', async (_, ...mode) => {
    const { code, output } = await verify(...access(), ...mode, '--flip-byte');
    expect(output).toMatch(/FAILED/);
    expect(output).not.toMatch(/^verified/m);
    expect(code).toBe(1);
  });

  it.each(['/v1/completions', '/v1/messages', '/v1/responses'])('verifies answers of %s, and fails on a flipped byte', async (path) => {
    for (const mode of [[], ['--stream']]) {
      expect((await verify(...access(), '--path', path, ...mode)).output).toMatch(/^verified/m);
      const flipped = await verify(...access(), '--path', path, ...mode, '--flip-byte');
      expect(flipped.output).toMatch(/FAILED/);
      expect(flipped.code).toBe(1);
    }
  });

  it('asks a model that the endpoint is for', async () => {
    const proxy = await startTamperingProxy(network.baseUrl, otherModelsFirst);
    try {
      const { code, output } = await verify('--base-url', proxy.address, '--key', network.apiKey);
      expect(output).toMatch(/^verified/m);
      expect(code).toBe(0);
    } finally {
      await proxy.close();
    }
  });

  it('verifies text beyond ASCII, and an answer cut by max_tokens', async () => {
    for (const change of [{ messages: [{ role: 'user', content: 'Repeat after me: größe 東京 🙂' }] }, { max_tokens: 1 }]) {
      const data = JSON.stringify({ model: network.model, messages: [{ role: 'user', content: 'Hello' }], stream: true, ...change });
      const { output } = await verify(...access(), '--stream', '--data', data);
      expect(output).toMatch(/^verified/m);
    }
  });

  it.each([['plain'], ['stream', '--stream']])('fails when any saved file of a %s answer is altered', async (name, ...mode) => {
    const directory = join(saved, name as string);
    expect((await verify(...access(), ...mode, '--save', directory)).code).toBe(0);
    expect((await verify(...access(), '--from', directory)).output).toMatch(/^verified/m);
    const body = readdirSync(directory).find((file) => file.startsWith('body')) as string;
    const bytes = readFileSync(join(directory, body));
    for (const at of [0, Math.floor(bytes.length / 3)]) {
      const altered = Buffer.from(bytes);
      altered[at] = (altered[at] as number) ^ 0x01;
      writeFileSync(join(directory, body), altered);
      const { code, output } = await verify(...access(), '--from', directory);
      expect(output).toMatch(/FAILED/);
      expect(code).toBe(1);
    }
  });
});
