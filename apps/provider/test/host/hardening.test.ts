/** Protection of prompts and keys: no debugger, core dump, engine network, open file mode or foreign environment. */
import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, readdirSync, readFileSync, readlinkSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { filesHolding } from '../../../../test/support/files-holding.js';
import { program } from '../../../../test/support/program.js';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { requestStatus } from '../../src/control/control-client.js';
import { findConfinement, forkedIn } from '../../src/host/hardening/confinement.js';
import { engineEnvironment } from '../../src/host/hardening/engine-environment.js';
import { inspectorProblem } from '../../src/host/hardening/inspector.js';
import { InsecureModeError, repairModes } from '../../src/host/hardening/secret-modes.js';
import { FakeCoordinator } from '../support/fake-coordinator.js';
import { childrenOf, ProviderProcess } from '../support/provider-process.js';

const MAIN = fileURLToPath(new URL('../../dist/main.js', import.meta.url));
const dir = temporaryDirectory('hardening');

async function ended(child: ChildProcess): Promise<{ code: number | null; stderr: string }> {
  let stderr = '';
  child.stderr?.on('data', (data: Buffer) => (stderr += data.toString()));
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, stderr };
}

function inodesOf(pid: number): Set<string> {
  return new Set(readdirSync(`/proc/${pid}/fd`).flatMap((fd) => /socket:\[(\d+)\]/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1] ?? []));
}

/** Sockets of a process in one network table (proc(5)), optionally of one state. */
function socketsOf(pid: number, table: string, state?: string): string[] {
  const inodes = inodesOf(pid);
  return readFileSync(`/proc/${pid}/net/${table}`, 'utf8')
    .split('\n')
    .slice(1)
    .map((line) => line.trim().split(/\s+/))
    .filter((columns) => inodes.has(columns[9] ?? '') && (state === undefined || columns[3] === state))
    .map((columns) => columns[1] ?? '');
}

describe('a running daemon', () => {
  it('opens no debugger, and denies its engine the network and its environment', async () => {
    const coordinator = await FakeCoordinator.listen();
    process.env.SECRET_OF_THE_OWNER = 'x';
    const dataDir = temporaryDirectory('hard');
    const provider = ProviderProcess.start(coordinator.url, ['--simulated-enclave'], dataDir);
    delete process.env.SECRET_OF_THE_OWNER;
    const session = await coordinator.session();
    await session.admit();
    const pid = provider.child.pid ?? 0;

    const marker = 'quicksilver-7391-giraffe';
    const answer = await session.submit({ messages: [{ role: 'user', content: `Say ${marker}` }], max_tokens: 4 });
    expect(answer.failure).toBeNull();
    await provider.logged('job');
    expect(filesHolding(dataDir, '').length).toBeGreaterThan(1);
    expect(filesHolding(dataDir, marker)).toEqual([]);
    expect(provider.stdout + provider.stderr).not.toContain(marker);

    provider.child.kill('SIGUSR1');
    await provider.logged('inspector_refused');
    const { hardening } = await requestStatus(dataDir, 60_000);
    expect(hardening.core_dumps).toBe('off');
    const engine = childrenOf(pid).find(({ command }) => command.includes('engine/process'))?.pid ?? 0;
    expect(engine).toBeGreaterThan(0);
    if (process.platform !== 'linux')
      console.warn('SKIPPED: without /proc nothing can be seen of the environment and the sockets of the engine');
    else {
      expect(readFileSync(`/proc/${pid}/limits`, 'utf8')).toMatch(/^Max core file size\s+0\s+0\s/m);
      const names = readFileSync(`/proc/${engine}/environ`, 'utf8')
        .split('\0')
        .map((entry) => entry.split('=')[0]);
      expect(names).not.toContain('SECRET_OF_THE_OWNER');
      expect(names.filter((name) => /^(NODE_OPTIONS|LD_|DYLD_)/.test(name ?? ''))).toEqual([]);
      if (hardening.engine_network === 'none') {
        console.warn(
          `SKIPPED: this machine lets nobody make a network namespace (${hardening.engine_network_problem}), so that the engine has the network`,
        );
      } else {
        expect(readlinkSync(`/proc/${engine}/ns/net`)).not.toBe(readlinkSync('/proc/self/ns/net'));
        const interfaces = readFileSync(`/proc/${engine}/net/dev`, 'utf8')
          .split('\n')
          .slice(2)
          .filter((line) => line.trim() !== '');
        expect(interfaces.map((line) => line.split(':')[0]?.trim())).toEqual(['lo']);
      }
      // The process has no listening network socket, so no debugger listens either.
      const listening = (): string[] => ['tcp', 'tcp6'].flatMap((table) => socketsOf(pid, table, '0A'));
      expect(listening()).toEqual([]);
      // The engine has no network socket.
      expect(inodesOf(engine).size).toBeGreaterThan(0);
      for (const table of ['tcp', 'tcp6', 'udp', 'udp6', 'raw']) expect(socketsOf(engine, table)).toEqual([]);
    }
    await provider.dispose();
    await coordinator.close();
  });

  it.each([
    ['--inspect', ['--inspect=0'], {}, /^A debugger is attached to this process; start it without --inspect\.$/m],
    [
      'NODE_OPTIONS',
      [],
      { NODE_OPTIONS: '--no-warnings --conditions=other' },
      /^NODE_OPTIONS contains --conditions=other, which could change this program; unset the variable and start again\.$/m,
    ],
  ] as [string, string[], Record<string, string>, RegExp][])('does not start with %s', async (_what, node, env, sentence) => {
    const args = [...node, MAIN, 'serve', '--coordinator', 'http://127.0.0.1:1', '--simulated-enclave', '--data-dir', join(dir, 'data')];
    const child = spawn(process.execPath, args, { env: { ...process.env, ...env }, stdio: ['ignore', 'ignore', 'pipe'] });
    const { code, stderr } = await ended(child);
    expect(code).toBe(1);
    expect(stderr).toMatch(sentence);
  });
});

it('a process forked without network has its IPC channel but cannot reach even this machine', async () => {
  const confinement = await findConfinement();
  if (confinement.kind === 'none') {
    console.warn(`SKIPPED: nothing here keeps a process from the network (${confinement.why})`);
    return;
  }
  const server = await FakeCoordinator.listen();
  const path = join(dir, 'reach.cjs');
  writeFileSync(
    path,
    `process.on('message', (port) => {
       const socket = require('node:net').connect(port, '127.0.0.1', () => process.send('reached', () => process.exit()));
       socket.on('error', ({ code }) => process.send(code, () => process.exit()));
     });`,
  );
  const port = Number(new URL(server.url).port);
  for (const [how, expected] of [
    [confinement, /^(ENETUNREACH|EHOSTUNREACH|EPERM|ECONNREFUSED)$/],
    [{ wrap: [] }, /^reached$/],
  ] as const) {
    const child = fork(path, [], { ...forkedIn(how), stdio: 'inherit' });
    child.send(port);
    const [answer] = (await once(child, 'message')) as [string];
    expect(answer).toMatch(expected);
    await once(child, 'exit');
  }
  await server.close();
});

it('a confinement is used only if its probe works', async () => {
  const tried: string[] = [];
  const attempt = (problem: (command: readonly string[]) => string | null) => async (command: readonly string[]) => {
    tried.push(command.slice(0, 2).join(' '));
    return problem(command);
  };
  expect(
    await findConfinement(
      'linux',
      attempt((command) => (command.includes('--user') ? 'Operation not permitted' : null)),
    ),
  ).toEqual({ kind: 'network_namespace', why: null, wrap: ['unshare', '--net', '--'] });
  expect(tried).toEqual(['unshare --user', 'unshare --net']);
  expect(
    await findConfinement(
      'linux',
      attempt(() => 'Operation not permitted'),
    ),
  ).toEqual({ kind: 'none', why: 'Operation not permitted', wrap: [] });
  expect(
    await findConfinement(
      'darwin',
      attempt(() => null),
    ),
  ).toMatchObject({ kind: 'sandbox', wrap: ['/usr/bin/sandbox-exec', '-p', '(version 1)(allow default)(deny network*)'] });
  expect(
    await findConfinement(
      'win32',
      attempt(() => null),
    ),
  ).toMatchObject({ kind: 'none', why: 'there is no way on win32' });
});

it('an engine gets only allowed and explicit environment variables', () => {
  const env = { PATH: '/bin', NODE_OPTIONS: '-r x', LD_PRELOAD: 'x', TOKEN: 'x' };
  expect(engineEnvironment({ UV_THREADPOOL_SIZE: '1' }, env)).toEqual({ PATH: '/bin', UV_THREADPOOL_SIZE: '1' });
});

it('debuggers are detected by flags, and preloaded code by variables', () => {
  expect(inspectorProblem([], {})).toBeNull();
  for (const flag of ['--inspect', '--inspect-brk=0.0.0.0:1', '--inspect-port=1', '--debug'])
    expect(inspectorProblem([flag], {})).toMatch('debugger');
  for (const name of ['LD_PRELOAD', 'DYLD_INSERT_LIBRARIES']) expect(inspectorProblem([], { [name]: 'x' })).toMatch(name);
  for (const options of [
    '--inspect',
    '--no-warnings --require=/x',
    '-r /x',
    '--import x',
    '--loader=x',
    '--max-old-space-size=1;--inspect',
    '/x',
  ]) {
    expect(inspectorProblem([], { NODE_OPTIONS: options })).toMatch(/^NODE_OPTIONS contains /);
  }
  for (const options of ['', ' ', '--max-old-space-size=4096 --no-warnings --enable-source-maps']) {
    expect(inspectorProblem([], { NODE_OPTIONS: options })).toBeNull();
  }
});

it('open file modes are repaired and listed; files of others are refused; links are not followed', () => {
  const data = join(dir, 'modes');
  mkdirSync(join(data, 'enclave'), { recursive: true, mode: 0o755 });
  chmodSync(data, 0o755);
  chmodSync(join(data, 'enclave'), 0o755);
  for (const name of ['config.toml', 'account.json', 'enclave/key', 'model-hashes.json'])
    writeFileSync(join(data, name), '', { mode: 0o644 });
  const outside = join(dir, 'outside');
  writeFileSync(outside, '', { mode: 0o644 });
  symlinkSync(outside, join(data, 'enclave', 'link'));
  expect(repairModes(data).sort()).toEqual(['', '/account.json', '/config.toml', '/enclave', '/enclave/key'].map((name) => data + name));
  expect(['', 'enclave', 'enclave/key', 'config.toml'].map((name) => statSync(join(data, name)).mode & 0o777)).toEqual([
    0o700, 0o700, 0o600, 0o600,
  ]);
  expect(statSync(outside).mode & 0o777).toBe(0o644);
  expect(repairModes(data)).toEqual([]);
  expect(() => repairModes(data, (process.getuid?.() ?? 0) + 1)).toThrow(InsecureModeError);
});

it('a process with a stuck event loop is killed, and a running one is not', async () => {
  const stuck = fork(await program('apps/provider/test/host/stuck-loop.ts'), [], { stdio: ['ignore', 'ignore', 'pipe', 'ipc'] });
  let stderr = '';
  stuck.stderr?.on('data', (data: Buffer) => (stderr += data.toString()));
  // The loop ran for longer than the limit before its message, and then got stuck.
  expect(await once(stuck, 'message')).toEqual(['turning', undefined]);
  const [code, signal] = (await once(stuck, 'close')) as [number | null, string | null];
  expect([code, signal]).toEqual([null, 'SIGKILL']);
  expect(stderr).toMatch(/^The provider was stuck for \d+ s, so the process was ended\.$/m);
});
