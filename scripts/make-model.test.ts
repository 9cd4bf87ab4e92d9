import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { getLlama } from 'node-llama-cpp';
import { afterAll, expect, test } from 'vitest';
import { program } from '../test/support/program.js';

const folder = mkdtempSync(join(tmpdir(), 'make-model-'));
const script = await program('scripts/make-model.ts');
afterAll(() => rmSync(folder, { recursive: true }));

function run(...args: string[]): Promise<{ readonly status: number | string | null | undefined; readonly stderr: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [script, ...args], (error, _, stderr) => resolve({ status: error === null ? 0 : error.code, stderr }));
  });
}

async function make(name: string, ...args: string[]): Promise<string> {
  const path = join(folder, name);
  const { status, stderr } = await run('--out', path, ...args);
  expect(stderr).toBe('');
  expect(status).toBe(0);
  return path;
}

test.each([
  ['llama', 'F16', '4k', 4096],
  ['qwen3', 'Q8_0', '128k', 131072],
  ['qwen3', 'F32', '2048', 2048],
] as const)('llama.cpp loads a random %s model in %s with context %s and generates from it', async (arch, type, context, tokens) => {
  const modelPath = await make(`${arch}-${type}.gguf`, '--arch', arch, '--type', type, '--context', context);
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

test('a learned vocabulary reads its text in far fewer tokens, and a brief model ends by itself', async () => {
  const text = fileURLToPath(new URL('../docs/architecture.md', import.meta.url));
  const plain = await make('plain.gguf');
  const learned = await make('learned.gguf', '--text', text, '--vocabulary', '2000', '--brief', '--context', '4k');
  const llama = await getLlama({ gpu: false, build: 'never', maxThreads: 1 });
  const model = await llama.loadModel({ modelPath: learned });
  const sample = readFileSync(text, 'utf8').slice(0, 2000);
  expect(model.detokenize(model.tokenize(sample))).toBe(sample);
  const reference = await llama.loadModel({ modelPath: plain });
  expect(model.tokenize(sample).length).toBeLessThan(reference.tokenize(sample).length / 2);
  const context = await model.createContext({ contextSize: 1024, sequences: 1, threads: 1 });
  let ended = 0;
  const sequence = context.getSequence();
  for (let seed = 1; seed <= 8; seed++) {
    let tokens = 0;
    for await (const _ of sequence.evaluate(model.tokenize(`text ${seed}`), { temperature: 1, seed })) if (++tokens === 200) break;
    if (tokens < 200) ended++;
    await sequence.clearHistory();
  }
  await llama.dispose();
  expect(ended).toBeGreaterThan(4);
});

test('the same seed gives the same file, another seed another', async () => {
  const digest = (path: string) => createHash('sha256').update(readFileSync(path)).digest('hex');
  const first = digest(await make('a.gguf', '--seed', '7'));
  expect(digest(await make('b.gguf', '--seed', '7'))).toBe(first);
  expect(digest(await make('c.gguf', '--seed', '8'))).not.toBe(first);
});

test.each([
  [['--dim', '128'], '--out is missing'],
  [['--out', 'x.gguf', '--arch', 'other'], '--arch other is unknown'],
  [['--out', 'x.gguf', '--heads', '3', '--dim', '128'], '--dim 128 must be an even multiple of --heads 3'],
  [['--out', 'x.gguf', '--layers', 'many'], '--layers many: a whole number above 0 is needed'],
  [['--out', 'x.gguf', '--context', '128kb'], '--context 128kb'],
  [['--out', 'x.gguf', '--bogus'], '--bogus'],
  [['--out', 'x.gguf', '--text', 'no-such.txt'], '--text no-such.txt: there is no such file'],
  [['--out', 'x.gguf', '--brief', '--endless'], 'exclude each other'],
  [['--out', '/no/such/folder/x.gguf'], 'its folder does not exist'],
])('bad arguments %j are named, and the exit code is 2', async (args, message) => {
  const { status, stderr } = await run(...args);
  expect(status).toBe(2);
  expect(stderr).toContain(message);
});
