/** Detects processes that a test left running: orphans and stopped processes. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { expect, it } from 'vitest';
import { leftProcesses } from './support/left-processes.js';

const WAITS = 'setInterval(() => {}, 1000)';
/** Starts a detached process and prints its id. */
const PARENT = `
  const { spawn } = require('node:child_process');
  const child = spawn(process.execPath, ['-e', ${JSON.stringify(WAITS)}], { stdio: 'ignore', env: {} });
  child.unref();
  console.log(child.pid);
  process.stdin.once('data', () => process.exit());
`;

const found = (pid: number) => leftProcesses().find((each) => each.pid === pid);

it.skipIf(!existsSync('/proc/self/stat'))('an orphan and a stopped child are left behind, a running child is not', async () => {
  const parent = spawn(process.execPath, ['-e', PARENT], { stdio: ['pipe', 'pipe', 'inherit'] });
  const [data] = (await once(parent.stdout, 'data')) as [Buffer];
  const pid = Number(data.toString());
  try {
    expect(found(pid)).toBeUndefined();
    process.kill(pid, 'SIGSTOP');
    await expect.poll(() => found(pid)?.state).toBe('T');
    process.kill(pid, 'SIGCONT');
    await expect.poll(() => found(pid)).toBeUndefined();
    parent.stdin.write('end\n');
    await once(parent, 'exit');
    process.kill(pid, 'SIGSTOP');
    await expect.poll(() => found(pid)).toMatchObject({ pid, state: 'T', command: expect.stringContaining(WAITS) });
  } finally {
    process.kill(pid, 'SIGKILL');
  }
  await expect.poll(() => found(pid)).toBeUndefined();
});
