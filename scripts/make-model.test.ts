import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { getLlama } from 'node-llama-cpp';
import { afterAll, expect, test } from 'vitest';

const folder = mkdtempSync(join(tmpdir(), 'make-model-'));
const script = fileURLToPath(new URL('make-model.ts', import.meta.url));
afterAll(() => rmSync(folder, { recursive: true }));

function run(...args: string[]) {
  return spawnSync(process.execPath, ['--import', 'tsx', script, ...args], { encoding: 'utf8' });
}

function make(name: string, ...args: string[]): string {
  const path = join(folder, name);
  const { status, stderr } = run('--out', path, ...args);
  expect(stderr).toBe('');
  expect(status).toBe(0);
  return path;
}

test.each([
  ['llama', 'F16', '4k', 4096],
  ['qwen3', 'Q8_0', '128k', 131072],
  ['qwen3', 'F32', '2048', 2048],
] as const)('llama.cpp loads a random %s model in %s with context %s and generates from it', async (arch, type, context, tokens) => {
  const modelPath = make(`${arch}-${type}.gguf`, '--arch', arch, '--type', type, '--context', context);
  const llama = await getLlama({ gpu: false, build: 'never', maxThreads: 1 });
  const model = await llama.loadModel({ modelPath });
  expect(model.trainContextSize).toBe(tokens);
  const sequence = (await model.createContext({ contextSize: 256, threads: 1 })).getSequence();
  const output = [];
  for await (const token of sequence.evaluate(model.tokenize('hello world'), { temperature: 0, yieldEogToken: true })) {
    output.push(token);
    if (output.length === 4) break;
  }
  await llama.dispose();
  expect(output.length).toBeGreaterThan(0);
});

test('the same seed gives the same file, another seed another', () => {
  const digest = (path: string) => createHash('sha256').update(readFileSync(path)).digest('hex');
  const first = digest(make('a.gguf', '--seed', '7'));
  expect(digest(make('b.gguf', '--seed', '7'))).toBe(first);
  expect(digest(make('c.gguf', '--seed', '8'))).not.toBe(first);
});

test.each([
  [['--dim', '128'], '--out is missing'],
  [['--out', 'x.gguf', '--arch', 'other'], '--arch other is unknown'],
  [['--out', 'x.gguf', '--heads', '3', '--dim', '128'], '--dim 128 must be an even multiple of --heads 3'],
  [['--out', 'x.gguf', '--layers', 'many'], '--layers many: a whole number above 0 is needed'],
  [['--out', 'x.gguf', '--context', '128kb'], '--context 128kb'],
  [['--out', 'x.gguf', '--bogus'], '--bogus'],
  [['--out', '/no/such/folder/x.gguf'], 'its folder does not exist'],
])('bad arguments %j are named, and the exit code is 2', (args, message) => {
  const { status, stderr } = run(...args);
  expect(status).toBe(2);
  expect(stderr).toContain(message);
});
