import { expect, onTestFinished, test } from 'vitest';
import { isAlive, waitUntilGone } from '../../test/support/processes.js';
import { AgentProcesses, killProcess } from './agent-processes.js';

test('leftoverCommands finds a daemon that outlives its supervisor', async () => {
  const processes = new AgentProcesses('http://127.0.0.1:9');
  onTestFinished(() => processes.removeFiles());
  await processes.runCommand('start');
  const [supervisor, daemon] = [await processes.supervisorPid(), await processes.daemonPid()];
  onTestFinished(() => {
    for (const pid of [supervisor, daemon]) if (pid > 0 && isAlive(pid)) killProcess(pid);
  });
  expect(daemon).toBeGreaterThan(0);
  // A frozen daemon cannot notice that the supervisor died.
  process.kill(daemon, 'SIGSTOP');
  killProcess(supervisor);
  expect(await processes.leftoverCommands(0)).toContainEqual(expect.stringContaining(processes.dataDir));
  process.kill(daemon, 'SIGCONT');
  await waitUntilGone([daemon]);
  expect(await processes.leftoverCommands()).toEqual([]);
});
