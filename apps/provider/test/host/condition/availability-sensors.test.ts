/** Sensors of owner activity, time zone and sleep: recorded texts, simulated folders, and real processes. */
import { spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { program } from '../../../../../test/support/program.js';
import { temporaryDirectory } from '../../../../../test/support/temporary-directory.js';
import {
  idleOfIoreg,
  idleOfLogind,
  OwnerActivityMonitor,
  readIdleMs,
  SIMULATED_IDLE_FILE,
} from '../../../src/host/condition/owner-activity-monitor.js';
import { inhibitCommand, SleepInhibitor } from '../../../src/host/condition/sleep-inhibitor.js';
import { systemTimeZone } from '../../../src/host/condition/time-zone.js';
import { isAlive } from '../../support/provider-process.js';

let root: string;
beforeEach(() => {
  root = temporaryDirectory('host');
});

function write(path: string, text: string, mode = 0o644): string {
  const whole = join(root, path);
  mkdirSync(dirname(whole), { recursive: true });
  writeFileSync(whole, text);
  chmodSync(whole, mode);
  return whole;
}

async function until<Value>(look: () => Value | null | undefined | false): Promise<Value> {
  for (;;) {
    const value = look();
    if (value) return value;
    await new Promise((next) => setTimeout(next, 10));
  }
}

describe('idle time', () => {
  it('of a Mac is read from IOHIDSystem, in nanoseconds', () => {
    const text = `+-o IOHIDSystem  <class IOHIDSystem, id 0x100000a1b, registered, matched, active, busy 0 (0 ms), retain 21>
  | {
  |   "HIDServiceSupport" = Yes
  |   "HIDIdleTime" = 4193219125
  |   "HIDClamshellMode" = No
  | }
`;
    expect(idleOfIoreg(text)).toBe(4193);
    expect(idleOfIoreg(`${text}"HIDIdleTime" = 1000000`)).toBe(1);
    expect([idleOfIoreg(''), idleOfIoreg('"HIDIdleTime" = soon')]).toEqual([null, null]);
  });

  it('on Linux comes from the login manager', () => {
    const now = 1_800_000_000_000;
    expect(idleOfLogind('b false\nt 0\n', now)).toBe(0);
    expect(idleOfLogind(`b true\nt ${(now - 90_000) * 1000}\n`, now)).toBe(90_000);
    expect(['b true\nt 0', '', 'b maybe\nt 1', 'Failed to get property'].map((text) => idleOfLogind(text, now))).toEqual([
      null,
      null,
      null,
      null,
    ]);
  });

  it('of a simulated machine is in a file, and unknown without', async () => {
    const source = { platform: 'linux', root } as const;
    expect(await readIdleMs(source)).toBeNull();
    write(SIMULATED_IDLE_FILE, '600\n');
    expect(await readIdleMs(source)).toBe(600_000);
    write(SIMULATED_IDLE_FILE, 'never');
    expect(await readIdleMs(source)).toBeNull();
  });

  it('is polled only while enabled', async () => {
    let looks = 0;
    const watch = new OwnerActivityMonitor({ platform: 'linux', root }, 5, () => looks++);
    write(SIMULATED_IDLE_FILE, '7');
    await watch.setEnabled(true);
    expect(watch.idleMs).toBe(7000);
    write(SIMULATED_IDLE_FILE, '0');
    await until(() => watch.idleMs === 0 && looks > 1);
    await watch.setEnabled(false);
    await watch.close();
    const before = looks;
    await new Promise((next) => setTimeout(next, 20));
    expect(looks).toBe(before);
  });
});

describe('the time zone', () => {
  it("is the system's current zone, not the process's initial one", () => {
    mkdirSync(join(root, 'etc'));
    symlinkSync('/usr/share/zoneinfo/Asia/Kathmandu', join(root, 'etc/localtime'));
    expect(systemTimeZone(root)).toBe('Asia/Kathmandu');
    rmSync(join(root, 'etc/localtime'));
    symlinkSync('/var/db/timezone/zoneinfo/America/Argentina/Buenos_Aires', join(root, 'etc/localtime'));
    expect(systemTimeZone(root)).toBe('America/Argentina/Buenos_Aires');
  });

  it("falls back to the process's zone", () => {
    const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
    expect(systemTimeZone(root)).toBe(own);
    mkdirSync(join(root, 'etc'));
    symlinkSync('/usr/share/zoneinfo/Middle/Earth', join(root, 'etc/localtime'));
    expect(systemTimeZone(root)).toBe(own);
    expect(systemTimeZone('/', { TZ: 'Pacific/Chatham' })).toBe('Pacific/Chatham');
  });
});

describe('sleep', () => {
  it('is held off by the system itself, idle sleep alone', () => {
    expect(inhibitCommand(root, 7)).toBeNull();
    const inhibit = write('usr/bin/systemd-inhibit', '');
    expect(inhibitCommand(root, 7)).toEqual({
      command: inhibit,
      args: ['--what=sleep:idle', '--mode=block', '--who=inference-provider', '--why=Serving models to the network', 'cat'],
    });
    const caffeinate = write('usr/bin/caffeinate', '');
    expect(inhibitCommand(root, 7)).toEqual({ command: caffeinate, args: ['-i', '-w', '7'] });
  });

  it('is permitted again at once when disabled', async () => {
    const log = join(root, 'pid');
    const awake = new SleepInhibitor({ command: '/bin/sh', args: ['-c', `echo $$ > ${log}; exec sleep 600`] }, () => {});
    awake.setActive(true);
    awake.setActive(true);
    const pid = Number(await until(() => existsSync(log) && readFileSync(log, 'utf8').trim()));
    expect([awake.isActive, isAlive(pid)]).toEqual([true, true]);
    awake.setActive(false);
    await until(() => !isAlive(pid));
    expect(awake.isActive).toBe(false);
  });

  it('reports a failed inhibitor once', async () => {
    const problems: string[] = [];
    const awake = new SleepInhibitor({ command: join(root, 'nothing-here'), args: [] }, (reason) => problems.push(reason));
    awake.setActive(true);
    await until(() => problems.length > 0);
    expect([awake.isActive, problems.length]).toEqual([false, 1]);
    awake.setActive(false);
  });

  it.each([
    // Like caffeinate, watches the given process.
    ['caffeinate', 'echo "$$" > "$(dirname "$0")/pid"; while kill -0 "$3" 2>/dev/null; do sleep 0.05; done\n'],
    // Like systemd-inhibit, runs a program and ends with it.
    ['systemd-inhibit', 'echo "$$" > "$(dirname "$0")/pid"; while echo "$1" | grep -q "^--"; do shift; done; "$@"; exit\n'],
  ])('comes back when the agent is killed: %s', async (name, script) => {
    write(`usr/bin/${name}`, `#!/bin/sh\n${script}`, 0o755);
    const log = join(root, 'usr/bin/pid');
    const agent = spawn(process.execPath, [await program('apps/provider/test/host/condition/sleep-inhibitor-program.ts'), root], {
      stdio: 'ignore',
    });
    const pid = Number(await until(() => existsSync(log) && readFileSync(log, 'utf8').trim()));
    expect(isAlive(pid)).toBe(true);
    agent.kill('SIGKILL');
    await until(() => !isAlive(pid));
  });
});
