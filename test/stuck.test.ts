/** The watchdog over test processes: a hung process prints its location and exits. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const WATCHER = fileURLToPath(new URL('./support/stuck/watcher.mjs', import.meta.url));

/** A watched process that runs this code after a delay. */
function watched(what: string): Promise<{ readonly signal: string | null; readonly stderr: string }> {
  const program = `
    import { Worker } from 'node:worker_threads';
    const beats = new SharedArrayBuffer(4);
    const watcher = new Worker(${JSON.stringify(WATCHER)}, { workerData: { beats, longestMs: 3000 }, execArgv: [] });
    setInterval(() => Atomics.add(new Int32Array(beats), 0, 1), 100);
    async function spinning() { for (;;) await null; }
    function waiting() { Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0); }
    watcher.on('online', () => setTimeout(() => { watcher.postMessage('some.test.ts'); setTimeout(() => { ${what} }, 50); }, 50));
  `;
  return new Promise((resolve) => {
    execFile(process.execPath, ['--input-type=module', '--eval', program], (error, _, stderr) => {
      resolve({ signal: error?.signal ?? null, stderr });
    });
  });
}

it.each(['spinning', 'waiting'])('ends one that is %s for ever, and says where', async (what) => {
  const { signal, stderr } = await watched(`${what}();`);
  expect(stderr).toContain('File: some.test.ts');
  expect(stderr).toContain(`at ${what} (`);
  expect(signal).toBe('SIGKILL');
});

it('leaves one alone that goes on', async () => {
  const { signal, stderr } = await watched('setTimeout(() => process.exit(0), 6000);');
  expect({ signal, stderr }).toEqual({ signal: null, stderr: '' });
});
