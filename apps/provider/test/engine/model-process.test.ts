/** Model processes: output that may quote prompts is dropped, and a silent process is killed, but not because its agent slept. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { ModelProcess } from '../../src/model-process/model-process.js';

const processes: ModelProcess<object, object, { type: 'none' }, { type: 'alive' }>[] = [];

afterEach(() => Promise.all(processes.splice(0).map((one) => one.kill())));

/** Answers its pings and reports each as a message, once it is loaded: a busy machine starts a process slowly. */
async function start(onMessage: () => void, onOutput: (line: string) => void = () => {}) {
  const folder = temporaryDirectory('model-process');
  const entry = join(folder, 'entry.mjs');
  writeFileSync(
    entry,
    `process.on('message', ({ type }) => {
      if (type === 'load') {
        console.error('cannot read the file');
        return process.send({ type: 'loaded', facts: {} });
      }
      if (type === 'none') {
        console.error('error parsing grammar: PLANTED');
        console.error('/ggml/src/ggml.c:1234: GGML_ASSERT(PLANTED "text") failed');
        return console.error('/ggml/src/ggml.c:1234: GGML_ASSERT(a->ne[0] == 1) failed');
      }
      process.send({ type: 'pong' });
      process.send({ type: 'alive' });
    });\n`,
  );
  const kind = { name: 'test', entry, silenceLimitMs: 1_000, pingEveryMs: 100 };
  const one = new ModelProcess<object, object, { type: 'none' }, { type: 'alive' }>(kind, { onOutput, onMessage });
  processes.push(one);
  await one.load({}, 60_000);
  return one;
}

it('survives a freeze of its agent beyond the silence limit', async () => {
  let news = 0;
  const one = await start(() => news++);
  let gone: string | null = null;
  void one.exited.then((reason) => (gone = reason));
  await expect.poll(() => news).toBeGreaterThan(0);
  // Blocks this process, as under SIGSTOP or while the machine sleeps.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3_000);
  const before = news;
  await expect.poll(() => gone ?? news).toBeGreaterThan(before + 3);
});

it('is killed when it stops answering pings', async () => {
  let news = 0;
  const one = await start(() => news++);
  await expect.poll(() => news).toBeGreaterThan(0);
  process.kill(one.pid as number, 'SIGSTOP');
  expect(await one.exited).toMatch(/SIGKILL/);
});

it('reports its output while it loads, and only failed assertions after that', async () => {
  const lines: string[] = [];
  const one = await start(
    () => {},
    (line) => lines.push(line),
  );
  one.send({ type: 'none' });
  await expect.poll(() => lines).toContain('/ggml/src/ggml.c:1234: GGML_ASSERT(a->ne[0] == 1) failed');
  expect(lines).toContain('cannot read the file');
  expect(lines).not.toContainEqual(expect.stringContaining('PLANTED'));
});
