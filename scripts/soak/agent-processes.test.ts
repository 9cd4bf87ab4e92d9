import { expect, onTestFinished, test } from 'vitest';
import { isAlive, waitUntilGone } from '../../test/support/processes.js';
import { AgentProcesses, killProcess } from './agent-processes.js';

test('leftoverCommands finds a daemon that outlives its supervisor', async () => {
  const processes = new AgentProcesses('http://127.0.0.1:9');
  onTestFinished(() => processes.removeFiles());
  await processes.runCommand('start');
  const daemon = await processes.daemonPid();
  expect(daemon).toBeGreaterThan(0);
  // A frozen daemon cannot notice that the supervisor died.
  process.kill(daemon, 'SIGSTOP');
  onTestFinished(() => {
    if (isAlive(daemon)) killProcess(daemon);
  });
  killProcess(await processes.supervisorPid());
  expect(await processes.leftoverCommands(0)).toContainEqual(expect.stringContaining(processes.dataDir));
  process.kill(daemon, 'SIGCONT');
  await waitUntilGone([daemon]);
  expect(await processes.leftoverCommands()).toEqual([]);
});
