/** The daemon as a service, from `start` to `stop`, as real processes under the supervisor of our own. */
import { spawn } from 'node:child_process';
import { appendFileSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { runNode } from '../../../../test/support/run-command.js';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { requestDaemon, requestStatus } from '../../src/control/control-client.js';
import { lastLines, logFile } from '../../src/log/log-files.js';
import { OwnSupervisor } from '../../src/service/own-supervisor.js';
import { FakeCoordinator } from '../support/fake-coordinator.js';
import { childrenOf, isAlive } from '../support/provider-process.js';

const MAIN = fileURLToPath(new URL('../../dist/main.js', import.meta.url));

let dataDir: string;
let coordinator: FakeCoordinator;
beforeEach(async () => {
  dataDir = temporaryDirectory('svc');
  coordinator = await FakeCoordinator.listen();
  writeFileSync(join(dataDir, 'config.toml'), `coordinator = "${coordinator.url}"\nsimulated_enclave = true\n`, { mode: 0o600 });
});
afterEach(async () => {
  await run(['stop']);
  await coordinator.close();
});

function run([command = '', ...args]: readonly string[], main = MAIN) {
  const manager = ['start', 'stop', 'restart'].includes(command) ? ['--manager', 'supervisor'] : [];
  return runNode([main, command, '--data-dir', dataDir, ...manager, ...args]);
}

const pidOf = async (): Promise<number> => (await requestStatus(dataDir, 60_000)).pid;
const supervisor = (): OwnSupervisor => new OwnSupervisor(dataDir, 25);

async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 20));
}

it('starts once, restarts after a crash, stops on request, and repeats all of this', async () => {
  expect((await run(['stop'])).stdout).toBe('The provider is not running.\n');
  const started = await run(['start']);
  expect(started).toMatchObject({ code: 0, stderr: '' });
  expect(started.stdout).toMatch(/^The provider is running \(process \d+, managed by supervisor\)\./);
  await (await coordinator.session()).admit();
  const first = await pidOf();
  expect((await run(['start'])).stdout).toBe(`The provider is already running (process ${first}, managed by supervisor).\n`);
  // Second daemon, in the foreground.
  const second = await run(['serve']);
  expect(second).toMatchObject({ code: 1, stderr: `Another provider is already running with the data directory ${dataDir}.\n` });

  process.kill(first, 'SIGKILL');
  await (await coordinator.session()).admit();
  const again = await pidOf();
  expect(again).not.toBe(first);
  expect((await supervisor().supervisorState())?.child).toMatchObject({ pid: again, restarts: 1, last_exit: 'SIGKILL' });

  // The core dump limit also applies to child processes.
  const limits = (pid: number): string =>
    /^Max core file size\s+(\S+)\s+(\S+)/m
      .exec(readFileSync(`/proc/${pid}/limits`, 'utf8'))
      ?.slice(1)
      .join(' ') ?? '';
  if (process.platform === 'linux')
    for (const pid of [again, ...childrenOf(again).map((child) => child.pid)]) expect(limits(pid)).toBe('0 0');

  // The daemon is registered before its log says so.
  const logged = (text: string): number => lastLines(logFile(dataDir), 500).filter((line) => line.includes(text)).length;
  await until(() => logged('"event":"registered"') === 2);
  const logs = await run(['logs', '--lines', '500']);
  expect(logs.stdout.match(/info {2}registered with the coordinator trust_level=self_signed\n/g)).toHaveLength(2);

  const supervisorPid = (await supervisor().supervisorState())?.pid ?? 0;
  expect(await run(['stop'])).toMatchObject({
    code: 0,
    stdout: 'The provider has stopped. To start it again, run: inference-provider start\n',
  });
  expect(isAlive(again)).toBe(false);
  // The supervisor answers before it ends.
  await until(() => !isAlive(supervisorPid));
  expect((await run(['status'])).code).toBe(3);
  expect((await run(['logs', '-n', '1'])).stdout).toMatch(/provider has stopped\n$/);
});

it("survives its supervisor's death, and follows a moved program", async () => {
  await run(['start']);
  await (await coordinator.session()).admit();
  const first = await pidOf();
  process.kill((await supervisor().supervisorState())?.pid ?? 0, 'SIGKILL');
  // The daemon ends with its supervisor, so that no unsupervised process remains.
  await until(() => !isAlive(first));
  const link = join(dataDir, 'moved.js');
  symlinkSync(MAIN, link);
  expect((await run(['start'], link)).code).toBe(0);
  await (await coordinator.session()).admit();
  const second = await pidOf();
  expect((await supervisor().supervisorState())?.command).toContain(link);
  expect((await run(['start'])).stdout).toMatch(/^The provider is running \(process/);
  await (await coordinator.session()).admit();
  expect(await pidOf()).not.toBe(second);
  expect(isAlive(second)).toBe(false);
});

it('does not start with invalid settings, and keeps running when they become invalid', async () => {
  appendFileSync(join(dataDir, 'config.toml'), 'log_levle = "debug"\n');
  const sentence = `${dataDir}/config.toml:3:1: there is no setting log_levle (did you mean log_level?).\n`;
  expect(await run(['start'])).toMatchObject({ code: 1, stderr: sentence, stdout: '' });
  expect(await run(['serve', '--check'])).toMatchObject({ code: 1, stderr: sentence });
  expect(await supervisor().supervisorState()).toBeNull();

  const good = readFileSync(join(dataDir, 'config.toml'), 'utf8').replace('levle', 'level');
  writeFileSync(join(dataDir, 'config.toml'), good);
  expect(await run(['serve', '--check'])).toMatchObject({ code: 0, stderr: '' });
  await run(['start']);
  await (await coordinator.session()).admit();
  const pid = await pidOf();
  writeFileSync(join(dataDir, 'config.toml'), `${good}[models]\nslots = 1000\n`);
  process.kill(pid, 'SIGHUP');
  const answered = await requestDaemon(
    dataDir,
    { path: '/v1/reload', body: {} },
    (value): value is { problem: string } => value !== null,
    60_000,
  );
  expect(answered.problem).toBe(`${dataDir}/config.toml:5:1: models.slots must be a whole number from 1 to 256`);
  const refused = await run(['status']);
  expect(refused.stdout.replaceAll(/\s+/g, ' ')).toContain(
    'models.slots must be a whole number from 1 to 256. The previous settings stay in effect.',
  );
  expect((await run(['doctor'])).stdout.replaceAll(/\s+/g, ' ')).toMatch(
    /PROBLEM settings .*:5:1: models\.slots must be a whole number from 1 to 256; the provider continues/,
  );
  expect((await run(['restart'])).code).toBe(1);

  // Reloaded automatically when the file changes.
  writeFileSync(join(dataDir, 'config.toml'), `${good}[models]\nslots = 3\n`);
  const settings = async () => (await requestStatus(dataDir, 60_000)).settings;
  await expect.poll(settings).toMatchObject({ problem: null, needs_restart: ['models.slots'] });
  expect((await run(['status'])).stdout.replaceAll(/\s+/g, ' ')).toContain('models.slots of');
  expect(await pidOf()).toBe(pid);
  expect((await run(['restart'])).code).toBe(0);
  await (await coordinator.session()).admit();
  expect(isAlive(pid)).toBe(false);
  expect(await requestStatus(dataDir, 60_000)).toMatchObject({ slots: 3, settings: { needs_restart: [] } });
});

it('reports why the daemon fails to start, and retries until stopped', async () => {
  appendFileSync(join(dataDir, 'config.toml'), '[models]\nreserve_gb = 4096\n');
  const failed = await run(['start']);
  expect(failed.code).toBe(1);
  expect(failed.stdout).toMatch(/^The provider failed to start: The model pico-demo needs .* of memory, .*\n.*logs --crash\n$/);
  expect((await run(['logs', '--crash'])).stdout).toMatch(/^The model pico-demo needs .* of memory/);
  await until(async () => ((await supervisor().supervisorState())?.child?.restarts ?? 0) > 0);
  expect((await run(['stop'])).code).toBe(0);
  expect(await supervisor().supervisorState()).toBeNull();
});

it.runIf(process.platform === 'linux')(
  'start, restart, stop and doctor name systemd where a unit of the owner runs the daemon',
  async () => {
    // systemd starts the first process of a unit with its own id in the environment.
    const unit = 'SYSTEMD_EXEC_PID=$$ exec "$0" "$@"';
    const child = spawn('sh', ['-c', unit, process.execPath, MAIN, 'serve', '--data-dir', dataDir], { stdio: 'ignore' });
    const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
    await (await coordinator.session()).admit();
    expect(await run(['start'])).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/\(process \d+\) under systemd, as \S.*\. Stop the unit first\.\n$/),
    });
    expect(JSON.parse((await run(['start', '--json'])).stdout)).toMatchObject({
      outcome: 'not_started',
      pid: child.pid,
      unit: expect.any(String) as string,
      problem: expect.stringContaining('Stop the unit first.') as string,
    });
    expect(await run(['restart'])).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/\(process \d+\) runs under systemd, as \S.*\. Restart the unit instead.*systemctl/),
    });
    expect(JSON.parse((await run(['restart', '--json'])).stdout)).toMatchObject({
      outcome: 'not_restarted',
      pid: child.pid,
      unit: expect.any(String) as string,
      problem: expect.stringContaining('Restart the unit instead') as string,
    });
    expect((await run(['doctor'])).stdout.replaceAll(/\s+/g, ' ')).toContain('ok service the provider runs under systemd, as');
    expect(await run(['stop'])).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/\(process \d+\) runs under systemd, as \S.*\. Stop the unit instead.*systemctl/),
    });
    expect(JSON.parse((await run(['stop', '--json'])).stdout)).toMatchObject({
      outcome: 'not_stopped',
      unit: expect.any(String) as string,
    });
    expect(await pidOf()).toBe(child.pid);
    child.kill('SIGTERM');
    expect(await ended).toBe(0);
  },
);

it('stop also ends a daemon started by hand, and start does not replace it', async () => {
  const child = spawn(process.execPath, [MAIN, 'serve', '--data-dir', dataDir], { stdio: 'ignore' });
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
  await (await coordinator.session()).admit();
  expect(await run(['start'])).toMatchObject({ code: 1, stdout: expect.stringContaining('but not as a service') as string });
  expect((await run(['stop'])).code).toBe(0);
  expect(await ended).toBe(0);
});
