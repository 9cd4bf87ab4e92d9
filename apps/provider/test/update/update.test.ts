/** Releases including hostile ones, failing versions, and kills at any moment. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Release } from '@inference/protocol';
import { pino } from 'pino';
import { create } from 'tar';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { program } from '../../../../test/support/program.js';
import { runNode } from '../../../../test/support/run-command.js';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { SelfUpdate } from '../../src/daemon/self-update.js';
import { updateAutomatically } from '../../src/update/automatic-updates.js';
import { prepare } from '../../src/update/download-release.js';
import { installation, launchCommand, removalAdvice, updateAdvice } from '../../src/update/installation.js';
import { currentVersion, presentVersions } from '../../src/update/layout.js';
import { chooseUpdate } from '../../src/update/prepare-release.js';
import { fetchRelease } from '../../src/update/releases.js';
import { awaitTrialEnd, beginTrial, brokenVersions, endTrial, readTrial, rollBack, switchTo, trialPath } from '../../src/update/trial.js';
import { confirmTrial, isHealthy, MIN_OFFLINE_RUN_MS } from '../../src/update/trial-health.js';
import { lockUpdates, removeDeadClaim } from '../../src/update/update-lock.js';
import { agentVersion } from '../../src/version.js';
import { childrenOf } from '../support/provider-process.js';
import { AGENT, PLATFORM, ReleaseServer } from './release-server.js';

const MAIN = fileURLToPath(new URL('../../dist/main.js', import.meta.url));
const NEVER = new AbortController().signal;

let server: ReleaseServer;
let prefix: string;

beforeAll(async () => {
  server = await ReleaseServer.listen();
});
afterAll(() => server.close());
beforeEach(() => {
  server.fault = () => false;
  prefix = temporaryDirectory('installation');
  place('1.0.0', 'setInterval(() => {}, 1000);');
  symlinkSync('versions/1.0.0', join(prefix, 'current'));
  mkdirSync(join(prefix, 'bin'));
  writeFileSync(join(prefix, 'bin/inference-provider'), '', { mode: 0o755 });
});

/** Installs a version whose `serve` runs the test's code. */
function place(version: string, serve: string): void {
  const folder = join(prefix, 'versions', version);
  mkdirSync(join(folder, 'bin'), { recursive: true });
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'inference-provider', version, type: 'module' }));
  writeFileSync(join(folder, 'bin/inference-provider.js'), AGENT(version, serve));
}

const ask = (more: Partial<Parameters<typeof fetchRelease>[0]> = {}) =>
  fetchRelease({ coordinator: server.url, platform: PLATFORM, version: null, keys: [server.publicKey], signal: NEVER, ...more }).then(
    ({ release }) => release,
  );
const ready = (release: Release, signal = NEVER) =>
  prepare({ prefix, release, onStep: () => {}, onProgress: () => {}, signal, tuning: { retryMs: 1, tries: 3, chunkBytes: 50_000 } });
const until = async (isSo: () => boolean): Promise<void> => {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 10));
};
const expectUntouched = (): void => {
  expect(currentVersion(prefix)).toBe('1.0.0');
  expect(presentVersions(prefix)).toEqual(['1.0.0']);
  expect(readdirSync(join(prefix, 'versions'))).toEqual(['1.0.0']);
};

describe('a release on offer', () => {
  it('is accepted only with a valid signature for this platform', async () => {
    const release = await server.release('1.1.0');
    expect(await ask()).toEqual(release);
    expect(await ask({ version: '1.1.0' })).toEqual(release);
    expect(await ask({ version: '9.9.9' })).toBeNull();
    const stranger = await ReleaseServer.listen();
    await expect(ask({ keys: [stranger.publicKey] })).rejects.toThrow("lacks the publisher's signature");
    expect(await ask({ keys: [stranger.publicKey, server.publicKey] })).toEqual(release);
    await stranger.close();
    await expect(ask({ keys: [] })).rejects.toThrow('has no release key');
    for (const change of [
      { version: '1.2.0' },
      { size: 5 },
      { url: 'http://elsewhere/' },
      { sha256: 'a'.repeat(64) },
      { notes: 'x' },
      { node: '1.0.0' },
    ]) {
      server.offer({ ...release, ...change }, '1.1.0');
      await expect(ask(), JSON.stringify(change)).rejects.toThrow("lacks the publisher's signature");
    }
    for (const invalid of [
      '<html>',
      '[]',
      '{}',
      { ...release, extra: 1 },
      { ...release, version: '1.1' },
      { ...release, url: 'file:///etc' },
      { ...release, size: 2 ** 40 },
    ]) {
      server.offer(invalid, '1.1.0');
      await expect(ask()).rejects.toThrow('invalid release description');
    }
    const other = await server.release('1.1.0', '', { platform: PLATFORM === 'darwin-arm64' ? 'linux-x64' : 'darwin-arm64' });
    await expect(ask()).rejects.toThrow(`for ${other.platform}`);
    server.offer(release, '2.0.0');
    await expect(ask({ version: '2.0.0' })).rejects.toThrow('instead of 2.0.0');
    server.offer('x'.repeat(100_000), '1.1.0');
    await expect(ask()).rejects.toThrow('description of the release is too long');
    await expect(ask({ coordinator: 'http://127.0.0.1:9' })).rejects.toMatchObject({ unreachable: true });
  });

  it('is an update only if newer than the installed version and not known to fail', async () => {
    const release = await server.release('1.10.0');
    const kind = (installed: string, broken: string[] = []) =>
      chooseUpdate(
        release,
        installed,
        broken.map((version) => ({ version, at: 0, reason: 'it ended' })),
        null,
      ).kind;
    expect(['1.9.9', '0.99.0', '1.10.0', '1.10.1', '2.0.0'].map((installed) => kind(installed))).toEqual([
      'update',
      'update',
      'current',
      'current',
      'current',
    ]);
    expect([kind('1.9.0', ['1.10.0']), kind('1.9.0', ['1.9.5']), chooseUpdate(null, '1.0.0', [], null).kind]).toEqual([
      'broken',
      'update',
      'current',
    ]);
  });
});

describe('a rollout', () => {
  it('is asked about in the name of the machine, and explained to the owner', async () => {
    const release = await server.release('1.0.0');
    server.notice = 'version=1.1.0; reason=capacity; now=yes';
    const machine = { token: 'session', channel: 'canary', failed: '1.0.9', isCheck: true } as const;
    const question = { coordinator: server.url, platform: PLATFORM, version: null, keys: [server.publicKey], signal: NEVER };
    const { notice } = await fetchRelease({ ...question, machine });
    expect(server.asked).toEqual({
      url: `/v1/agent/releases/latest?platform=${PLATFORM}&channel=canary&failed=1.0.9&check=yes`,
      authorization: 'Bearer session',
    });
    const later = { version: '1.1.0', reason: 'capacity', mayUpdateNow: true };
    expect(notice).toEqual(later);
    expect(chooseUpdate(release, '1.0.0', [], notice)).toEqual({ kind: 'current', later });
    expect(chooseUpdate(release, '1.1.0', [], notice)).toEqual({ kind: 'current', later: null });
    const broken = [{ version: '1.1.0', at: 0, reason: 'it ended' }];
    expect(chooseUpdate(release, '1.0.0', broken, notice)).toEqual({ kind: 'broken', version: '1.1.0', reason: 'it ended' });
    // An unsigned header names a version, and nothing more.
    for (const text of ['version=1.1; reason=capacity; now=yes', 'version=1.1.0', '<script>', null]) {
      server.notice = text;
      expect((await fetchRelease(question)).notice).toBeNull();
    }
    expect(server.asked).toEqual({ url: `/v1/agent/releases/latest?platform=${PLATFORM}`, authorization: '' });
  });
});

describe('making a release ready', () => {
  it('downloads, verifies and unpacks beside the running version, and resumes', async () => {
    const release = await server.release('1.1.0', '', {}, 200_000);
    server.sent = 0;
    let asked = 0;
    server.fault = (request) => {
      if (++asked < 4) return false;
      request.socket.destroy();
      return true;
    };
    await expect(ready(release)).rejects.toThrow('not downloaded');
    expectUntouched();
    const before = server.sent;
    server.fault = () => false;
    await ready(release);
    expect(server.sent - before).toBeLessThan(release.size);
    expect(presentVersions(prefix).sort()).toEqual(['1.0.0', '1.1.0']);
    expect(currentVersion(prefix)).toBe('1.0.0');
    expect(readdirSync(join(prefix, 'downloads'))).toEqual([]);
    const { sent } = server;
    await ready(release);
    expect(server.sent).toBe(sent);
  });

  it('refuses unsigned bytes, excess bytes, and redirects', async () => {
    const release = await server.release('1.1.0');
    server.putFile('/files/1.1.0.tgz', Buffer.alloc(release.size));
    await expect(ready(release)).rejects.toThrow('SHA-256');
    server.putFile('/files/1.1.0.tgz', Buffer.alloc(release.size + 1));
    await expect(ready(release)).rejects.toThrow('the file should have');
    let sent = 0;
    server.fault = (_request, response) => {
      response.writeHead(200);
      const more = (): void => {
        if (response.destroyed) return;
        sent += 1 << 16;
        response.write(Buffer.alloc(1 << 16), more);
      };
      more();
      return true;
    };
    await expect(ready(release)).rejects.toThrow('more than the file should have');
    expect(sent).toBeLessThan(1 << 26);
    server.fault = (_request, response) => {
      response.writeHead(302, { location: `${server.url}/files/other.tgz` }).end();
      return true;
    };
    await expect(ready(release)).rejects.toThrow('302');
    expectUntouched();
  });

  it('refuses archives with outside paths, other contents, or a program that fails to start', async () => {
    const folder = temporaryDirectory('odd');
    mkdirSync(join(folder, 'package'));
    writeFileSync(join(folder, 'package/file'), 'x');
    writeFileSync(join(folder, 'outside'), 'x');
    symlinkSync('/etc/passwd', join(folder, 'package/link'));
    const odd = async (name: string, paths: string[], cwd = folder): Promise<Release> => {
      await create({ file: join(folder, name), cwd, gzip: true, preservePaths: true }, paths);
      return await server.releaseFile('1.1.0', join(folder, name));
    };
    await expect(ready(await odd('link.tgz', ['package']))).rejects.toThrow('SymbolicLink');
    await expect(ready(await odd('up.tgz', ['../outside'], join(folder, 'package')))).rejects.toThrow('outside its folder');
    await expect(ready(await odd('absolute.tgz', [join(folder, 'outside')]))).rejects.toThrow('outside its folder');
    await expect(ready(await odd('beside.tgz', ['outside']))).rejects.toThrow('outside its folder');
    await expect(ready(await odd('other.tgz', ['package/file']))).rejects.toThrow('unexpected contents');
    writeFileSync(join(folder, 'malformed.tgz'), 'not an archive');
    await expect(ready(await server.releaseFile('1.1.0', join(folder, 'malformed.tgz')))).rejects.toThrow('archive of the release');
    const mute = await server.pack({
      'package.json': '{"name":"inference-provider","version":"1.1.0"}',
      'bin/inference-provider.js': 'throw 1',
    });
    await expect(ready(await server.releaseFile('1.1.0', mute))).rejects.toThrow('does not start');
    await expect(ready(await server.release('1.1.0', '', { node: '99.0.0' }))).rejects.toThrow('needs Node 99.0.0');
    expectUntouched();
  });

  it('leaves no incomplete version when killed at any moment, and completes at the next try', async () => {
    const release = await server.release('1.1.0', '', {}, 200_000);
    const churn = await program('apps/provider/test/update/prepare-churn.ts');
    for (const afterMs of [0, 40, 90, 160]) {
      const child = spawn(process.execPath, [churn, prefix, JSON.stringify(release)], { stdio: ['ignore', 'pipe', 'inherit'] });
      const closed = new Promise((resolve) => child.once('close', resolve));
      await new Promise((resolve) => child.stdout?.once('data', resolve));
      await new Promise((resolve) => setTimeout(resolve, afterMs));
      child.kill('SIGKILL');
      await closed;
      expect(currentVersion(prefix)).toBe('1.0.0');
      if (presentVersions(prefix).includes('1.1.0')) {
        expect(readFileSync(join(prefix, 'versions/1.1.0/filler'))).toHaveLength(200_000);
        rmSync(join(prefix, 'versions/1.1.0'), { recursive: true });
      }
    }
    await ready(release);
    expect(readdirSync(join(prefix, 'versions')).sort()).toEqual(['1.0.0', '1.1.0']);
    expect(readdirSync(join(prefix, 'downloads'))).toEqual([]);
  });

  it('runs one at a time, and ignores the lock of a dead process', () => {
    const unlock = lockUpdates(prefix);
    expect(() => lockUpdates(prefix)).toThrow(`process ${process.pid}`);
    unlock();
    writeFileSync(join(prefix, 'update.lock'), '4194305');
    lockUpdates(prefix)();
    expect(readdirSync(prefix).filter((name) => name.startsWith('update.lock'))).toEqual([]);
  });

  it('takes a lock whose process id is not written yet for a live one, for some seconds', () => {
    const lock = join(prefix, 'update.lock');
    writeFileSync(lock, '');
    expect(() => lockUpdates(prefix)).toThrow('another update is in progress');
    utimesSync(lock, 1000, Date.now() / 1000 - 60);
    lockUpdates(prefix)();
    expect(existsSync(lock)).toBe(false);
  });

  it('ignores a lock of an earlier process with the same id', () => {
    const lock = join(prefix, 'update.lock');
    const unlock = lockUpdates(prefix);
    const [pid, start] = readFileSync(lock, 'utf8').split('\n');
    expect([pid, start]).toEqual([String(process.pid), expect.stringMatching(/\d/)]);
    // A clock that was set ahead makes the lock look old.
    utimesSync(lock, 1000, Date.now() / 1000 - 24 * 3600);
    expect(() => lockUpdates(prefix)).toThrow(`process ${pid}`);
    unlock();
    writeFileSync(lock, `${pid}\nearlier\n`);
    lockUpdates(prefix)();
    expect(existsSync(lock)).toBe(false);
  });

  it('puts a claim back that another process took since the dead one was read', () => {
    const [claim, renamed] = [join(prefix, 'update.lock.claim'), join(prefix, 'update.lock.renamed')];
    writeFileSync(claim, String(process.pid));
    removeDeadClaim(claim, renamed);
    expect([readFileSync(claim, 'utf8'), existsSync(renamed)]).toEqual([String(process.pid), false]);
    writeFileSync(claim, '4194305');
    removeDeadClaim(claim, renamed);
    expect([existsSync(claim), existsSync(renamed)]).toEqual([false, false]);
    expect(() => removeDeadClaim(claim, renamed)).not.toThrow();
  });

  it('respects a lock without the start of its process, written by an older version', () => {
    const lock = join(prefix, 'update.lock');
    writeFileSync(lock, String(process.pid));
    utimesSync(lock, 1000, Date.now() / 1000 - 24 * 3600);
    expect(() => lockUpdates(prefix)).toThrow(`process ${process.pid}`);
  });

  it('leaves a dead lock to another process that is replacing it', () => {
    const [lock, claim] = [join(prefix, 'update.lock'), join(prefix, 'update.lock.claim')];
    writeFileSync(lock, '4194305');
    writeFileSync(claim, String(process.pid));
    expect(() => lockUpdates(prefix)).toThrow('another update is in progress');
    expect(readFileSync(lock, 'utf8')).toBe('4194305');
    writeFileSync(claim, '4194305');
    expect(() => lockUpdates(prefix), 'removes the dead claim').toThrow('another update is in progress');
    lockUpdates(prefix)();
    expect(readdirSync(prefix).filter((name) => name.startsWith('update.lock'))).toEqual([]);
  });
});

describe('a version on trial', () => {
  const guards: ChildProcess[] = [];
  // Ends processes of a failed test; versions end with their guard.
  afterEach(() => {
    for (const guard of guards.splice(0)) guard.kill('SIGKILL');
  });

  /** Runs the guard as the launcher does, and collects its output. */
  async function guarded(): Promise<{ child: ChildProcess; said: () => string; ended: Promise<number | null> }> {
    const main = await program('apps/provider/src/update/guard/main.ts');
    const child = spawn(process.execPath, [main, prefix, 'serve'], { stdio: ['ignore', 'pipe', 'pipe'] });
    guards.push(child);
    let said = '';
    child.stdout?.on('data', (data: Buffer) => (said += data.toString()));
    child.stderr?.on('data', (data: Buffer) => (said += data.toString()));
    return { child, said: () => said, ended: new Promise((resolve) => child.once('close', resolve)) };
  }
  const SAY = (word: string): string =>
    `process.on('disconnect', () => process.exit()); console.log('${word}'); setInterval(() => {}, 1000);`;
  const trySecond = (serve: string, trialTimeoutMs = 60_000): void => {
    place('1.0.0', SAY('first runs'));
    place('1.1.0', serve);
    beginTrial(prefix, '1.1.0', '1.0.0', trialTimeoutMs, 1);
  };

  it('that keeps crashing is rolled back and recorded', async () => {
    trySecond('process.exit(7);');
    const { child, said, ended } = await guarded();
    await until(() => said().includes('first runs'));
    expect(said()).toContain('1.1.0 exited with 7 before its confirmation (start 3 of 3)');
    expect([currentVersion(prefix), readTrial(prefix)]).toEqual(['1.0.0', null]);
    expect(brokenVersions(prefix)).toMatchObject([{ version: '1.1.0', reason: expect.stringContaining('3 times') }]);
    child.kill('SIGTERM');
    expect(await ended).toBe(0);
  });

  it('that hangs is killed and rolled back', async () => {
    trySecond('setInterval(() => {}, 1000);', 300);
    const { child, said } = await guarded();
    await until(() => said().includes('first runs'));
    expect(brokenVersions(prefix)).toMatchObject([{ version: '1.1.0', reason: expect.stringContaining('not confirmed within') }]);
    child.kill('SIGKILL');
  });

  it('that is confirmed stays, and its later exit is passed on', async () => {
    trySecond(
      `require('node:fs').rmSync('${trialPath(prefix)}'); console.log('second works'); process.stdin.resume(); setTimeout(() => process.exit(3), 50);`.replace(
        "require('node:fs')",
        "process.getBuiltinModule('node:fs')",
      ),
    );
    const { said, ended } = await guarded();
    expect(await ended).toBe(3);
    expect(said()).toContain('second works');
    expect([currentVersion(prefix), brokenVersions(prefix)]).toEqual(['1.1.0', []]);
    expect(await awaitTrialEnd(prefix, '1.1.0', 1000, NEVER)).toBe(true);
  });

  it('is asked to end once, though a whole group of processes gets the signal', async () => {
    trySecond(
      `let heard = 0; const hear = () => { if (++heard > 1) process.exit(9); setTimeout(() => process.exit(0), 300); };` +
        `process.on('SIGTERM', hear); process.on('disconnect', () => {}); console.log('second runs'); setInterval(() => {}, 1000);`,
    );
    const { child, said, ended } = await guarded();
    await until(() => said().includes('second runs'));
    // Like systemd, signals both processes.
    const pid = childrenOf(child.pid as number)[0]?.pid as number;
    process.kill(pid, 'SIGTERM');
    child.kill('SIGTERM');
    expect(await ended).toBe(0);
    expect(readTrial(prefix)).toMatchObject({ starts: 1 });
  });

  it('is not rolled back for a requested exit, and does not outlive its guard', async () => {
    const note = join(prefix, 'pid');
    trySecond(
      `process.getBuiltinModule('node:fs').writeFileSync('${note}', String(process.pid)); process.on('SIGTERM', () => process.exit(0)); ${SAY('second runs')}`,
    );
    const first = await guarded();
    await until(() => first.said().includes('second runs'));
    first.child.kill('SIGTERM');
    expect(await first.ended).toBe(0);
    expect(readTrial(prefix)).toMatchObject({ version: '1.1.0', starts: 1 });
    const second = await guarded();
    await until(() => second.said().includes('second runs'));
    const pid = Number(readFileSync(note, 'utf8'));
    second.child.kill('SIGKILL');
    await until(() => {
      try {
        process.kill(pid, 0);
        return false;
      } catch {
        return true;
      }
    });
    expect(readTrial(prefix)).toMatchObject({ starts: 2 });
  });

  it('is confirmed when registered, or after a while without a reachable coordinator', async () => {
    const health = { registered: false, isCoordinatorUnreachable: false, answersCommands: true, runningForMs: MIN_OFFLINE_RUN_MS };
    expect(isHealthy(health)).toBe(false);
    expect(isHealthy({ ...health, registered: true })).toBe(true);
    expect(isHealthy({ ...health, registered: true, answersCommands: false })).toBe(false);
    expect(isHealthy({ ...health, isCoordinatorUnreachable: true })).toBe(true);
    expect(isHealthy({ ...health, isCoordinatorUnreachable: true, runningForMs: MIN_OFFLINE_RUN_MS - 1 })).toBe(false);

    place('0.9.0', '');
    place('1.1.0', '');
    const confirm = (version: string) =>
      confirmTrial({ prefix, version, health: async () => ({ ...health, registered: true }), signal: NEVER });
    expect(await confirm('1.0.0')).toBe(false);
    switchTo(prefix, '1.1.0', 1000, 1);
    expect(await confirm('1.0.0')).toBe(false);
    expect(readTrial(prefix)).not.toBeNull();
    const leave = new AbortController();
    const hanging = confirmTrial({ prefix, version: '1.1.0', health: () => new Promise(() => {}), signal: leave.signal });
    leave.abort();
    expect(await hanging).toBe(false);
    expect(await confirm('1.1.0')).toBe(true);
    expect([readTrial(prefix), currentVersion(prefix), presentVersions(prefix).sort()]).toEqual([null, '1.1.0', ['1.0.0', '1.1.0']]);
    expect(() => switchTo(prefix, '0.9.0', 1000, 1)).toThrow('not installed');
  });

  it('leaves a complete installation when the switching process is killed', async () => {
    place('1.1.0', '');
    const churn = await program('apps/provider/test/update/update-churn.ts');
    for (let round = 0; round < 5; round++) {
      const child = spawn(process.execPath, [churn, prefix], { stdio: ['ignore', 'pipe', 'inherit'] });
      const closed = new Promise((resolve) => child.once('close', resolve));
      await new Promise((resolve) => child.stdout?.once('data', resolve));
      // At a random point of the loop.
      await new Promise((resolve) => setTimeout(resolve, 2 * round));
      child.kill('SIGKILL');
      await closed;
      const current = currentVersion(prefix);
      expect(['1.0.0', '1.1.0']).toContain(current);
      const trial = readTrial(prefix);
      if (trial !== null) expect(trial).toMatchObject({ version: current });
      if (trial !== null) rollBack(prefix, trial, 'killed', 1);
      endTrial(prefix);
      expect(presentVersions(prefix).sort()).toEqual(['1.0.0', '1.1.0']);
    }
  });
});

describe('an installation', () => {
  it('is known by where the program lies', () => {
    expect(installation(join(prefix, 'current'))).toEqual({ kind: 'own', prefix, version: '1.0.0', root: join(prefix, 'versions/1.0.0') });
    expect(launchCommand(installation(join(prefix, 'current')))).toEqual([join(prefix, 'bin/inference-provider')]);
    const npm = join(prefix, 'lib/node_modules/inference-provider');
    mkdirSync(npm, { recursive: true });
    writeFileSync(join(npm, 'package.json'), '{"version":"1.0.0"}');
    expect(installation(npm)).toMatchObject({ kind: 'npm' });
    expect(installation()).toMatchObject({ kind: 'clone' });
    const brew = join(prefix, 'Cellar/inference-provider/1.0.0/libexec');
    mkdirSync(brew, { recursive: true });
    writeFileSync(join(brew, 'package.json'), '{"version":"1.0.0"}');
    writeFileSync(join(brew, 'installer.json'), '{"kind":"homebrew","launcher":"/opt/homebrew/bin/inference-provider"}');
    const managed = installation(brew);
    expect(launchCommand(managed)).toEqual(['/opt/homebrew/bin/inference-provider']);
    expect([updateAdvice(managed), removalAdvice(managed)]).toEqual([
      expect.stringContaining('brew upgrade inference-provider'),
      expect.stringContaining('brew uninstall inference-provider'),
    ]);
    writeFileSync(join(brew, 'installer.json'), '{"kind":"homebrew","launcher":"bin/inference-provider"}');
    expect(() => installation(brew)).toThrow('installer.json is not valid');
  });

  it('reports an unavailable version by exit code, and does nothing for the installed one', async () => {
    const update = async (version: string) => {
      const args = ['update', '--to', version, '--coordinator', server.url, '--data-dir', prefix, '--json'];
      const { code, stdout } = await runNode([MAIN, ...args]);
      return { code, outcome: JSON.parse(stdout).outcome };
    };
    expect(await update('9.9.9')).toEqual({ code: 1, outcome: 'not_offered' });
    expect(await update(agentVersion())).toEqual({ code: 0, outcome: 'current' });
  });

  it('as a service switches to a prepared version and requests a restart; by hand logs and notifies the owner', async () => {
    place('1.1.0', '');
    const asked = join(prefix, 'asked');
    const report = JSON.stringify({ outcome: 'ready', installed: '1.0.0', version: '1.1.0', notes: null, text: [] });
    writeFileSync(join(prefix, 'bin/inference-provider'), `#!/bin/sh\necho "$@" > '${asked}'\necho '${report}'\n`, { mode: 0o755 });
    const lines: string[] = [];
    const ownerNeeded: string[] = [];
    const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(line) });
    const run = async (service: boolean): Promise<void> => {
      let restart: (() => void) | null = null;
      const restarted = new Promise<void>((resolve) => (restart = resolve));
      const said = until(() => lines.some((line) => line.includes('"update_ready"')));
      const self = new SelfUpdate({
        installation: { kind: 'own', prefix, version: '1.0.0', root: prefix },
        dataDir: prefix,
        coordinator: server.url,
        service,
        automatic: () => true,
        isRegistered: () => true,
        onRestart: () => restart?.(),
        onOwnerNeeded: (version) => ownerNeeded.push(version),
        log,
        everyMs: 5,
      });
      await (service ? restarted : said);
      await self.close();
    };
    await run(false);
    expect(readTrial(prefix)).toBeNull();
    expect(readFileSync(asked, 'utf8')).toContain(`update --prepare --json --data-dir ${prefix} --coordinator ${server.url}`);
    await run(true);
    expect(readTrial(prefix)).toMatchObject({ version: '1.1.0', previous: '1.0.0' });
    expect(ownerNeeded).toEqual(['1.1.0']);
  });

  it('checks for updates automatically with jitter, unless disabled', async () => {
    const leave = new AbortController();
    const seen: string[] = [];
    let isEnabled = false;
    const answers = [new Error('away'), null, '1.1.0', '1.1.0'];
    await updateAutomatically({
      isEnabled: () => {
        seen.push(isEnabled ? 'isEnabled' : 'not isEnabled');
        isEnabled = true;
        return seen.length > 1;
      },
      prepareUpdate: async () => {
        const answer = answers.shift();
        if (answer instanceof Error) throw answer;
        return answer ?? null;
      },
      onReady: (version) => {
        seen.push(version);
        if (seen.filter((word) => word === version).length === 1) throw new Error('damaged');
      },
      onProblem: (error) => seen.push(String(error)),
      signal: leave.signal,
      everyMs: 4,
    });
    expect(seen).toEqual([
      'not isEnabled',
      'isEnabled',
      'Error: away',
      'isEnabled',
      'isEnabled',
      '1.1.0',
      'Error: damaged',
      'isEnabled',
      '1.1.0',
    ]);
    leave.abort();
    await updateAutomatically({
      isEnabled: () => true,
      prepareUpdate: async () => null,
      onReady: () => {},
      onProblem: () => {},
      signal: leave.signal,
    });
  });
});
