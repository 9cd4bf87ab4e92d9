/** Notifications of the daemon and of the command, with a recorded `osascript`. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pino from 'pino';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { timerCountOf } from '../../../../test/support/own-timers.js';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { notificationsCommandOn } from '../../src/cli/commands/notifications.js';
import { readConfig } from '../../src/config/read-config.js';
import { NEEDS_MACOS, showMacNotification } from '../../src/notifications/mac-notification.js';
import { OFFLINE_MS } from '../../src/notifications/notification-policy.js';
import { EARNINGS_INTERVAL_MS, Notifier } from '../../src/notifications/notifier.js';

describe('the daemon', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it('shows, reads earnings only while turned on, logs no text, and stops', async () => {
    const timerCount = timerCountOf('/notifications/notifier');
    const shown: string[] = [];
    const lines: string[] = [];
    let isOn = true;
    let microUsd = 0;
    const earnings = vi.fn(async () => ({ account: 'Ada', microUsd }));
    const dataDir = temporaryDirectory('notifier');
    const notifier = new Notifier({
      dataDir,
      isOn: () => isOn,
      show: async (body) => (shown.push(body) > 1 ? 'not permitted' : null),
      earnings,
      log: pino({ level: 'info' }, { write: (line: string) => void lines.push(line) }),
    });
    await vi.advanceTimersByTimeAsync(OFFLINE_MS);
    expect(shown).toEqual([expect.stringContaining('not been connected')]);
    notifier.on({ type: 'linked' });
    await vi.advanceTimersByTimeAsync(0);
    microUsd = 20;
    await vi.advanceTimersByTimeAsync(EARNINGS_INTERVAL_MS);
    expect(shown[1]).toBe('Your account received its first earnings.');
    const facts = lines.map((line) => JSON.parse(line)).map(({ event, kind, reason }) => [event, kind, reason]);
    expect(facts).toEqual([
      ['notification', 'offline', undefined],
      ['notification_failed', 'earnings', 'not permitted'],
    ]);
    expect(lines.join('')).not.toContain('Ada');
    isOn = false;
    const { length } = earnings.mock.calls;
    await vi.advanceTimersByTimeAsync(2 * EARNINGS_INTERVAL_MS);
    expect(earnings.mock.calls).toHaveLength(length);
    expect(timerCount()).toBeGreaterThan(0);
    notifier.close();
    expect(timerCount()).toBe(0);
  });
});

describe('a crash loop', () => {
  it('repeats no notification, for any content of the file, and shows none that cannot be stored', () => {
    const dataDir = temporaryDirectory('notifier');
    const shown: string[] = [];
    const lines: string[] = [];
    const crash = (dir = dataDir): void => {
      const notifier = new Notifier({
        dataDir: dir,
        isOn: () => true,
        show: async (body) => (shown.push(body) > 0 ? null : 'never'),
        earnings: async () => null,
        log: pino({ level: 'info' }, { write: (line: string) => void lines.push(line) }),
      });
      notifier.on({ type: 'model_disabled', model: 'pico' });
      notifier.close();
    };
    for (let start = 0; start < 20; start++) crash();
    expect(shown).toHaveLength(1);
    for (const text of ['{', '{"model_failed":"x"}', '[]', '']) {
      writeFileSync(join(dataDir, 'notifications.json'), text);
      crash();
      crash();
    }
    expect(shown).toHaveLength(5);
    crash(join(dataDir, 'missing'));
    expect(shown).toHaveLength(5);
    expect(JSON.parse(lines.at(-1) ?? '')).toMatchObject({ event: 'notification_failed' });
  });
});

describe('macOS', () => {
  it('gets the text as an argument of a constant script', async () => {
    const calls: [string, readonly string[]][] = [];
    const run = async (program: string, args: readonly string[]) => {
      calls.push([program, args]);
      return { code: calls.length === 1 ? 0 : 1, stdout: '', stderr: 'first\nexecution error\n' };
    };
    const body = '-e "do shell script \\"id\\"" & quit';
    expect(await showMacNotification(body, run)).toBeNull();
    expect(await showMacNotification('other', run)).toBe('execution error');
    const [[program, args], [, others]] = calls as [[string, string[]], [string, string[]]];
    expect(program).toBe('/usr/bin/osascript');
    expect(args.slice(-2)).toEqual(['Inference Provider', body]);
    expect(args.slice(0, -1)).toEqual(others.slice(0, -1));
    expect(args.slice(0, -2).filter((_, index) => index % 2 === 0)).toEqual(['-e', '-e', '-e']);
  });
});

describe('the command', () => {
  let dataDir: string;
  let printed: string;
  const shown: string[] = [];
  const run = async (platform: NodeJS.Platform, ...args: string[]): Promise<[number, string]> => {
    printed = '';
    const show = async (body: string) => (shown.push(body) > 1 ? 'not permitted' : null);
    return [await notificationsCommandOn({ platform, show }).run([...args, '--data-dir', dataDir]), printed];
  };
  beforeEach(() => {
    dataDir = temporaryDirectory('notifications');
    const write = (text: unknown, ...rest: unknown[]): boolean => {
      printed += String(text);
      for (const done of rest) if (typeof done === 'function') done();
      return true;
    };
    vi.spyOn(process.stdout, 'write').mockImplementation(write);
    vi.spyOn(process.stderr, 'write').mockImplementation(write);
  });
  afterEach(() => void vi.restoreAllMocks());

  it('shows and changes the setting on macOS, and tests it', async () => {
    const path = join(dataDir, 'config.toml');
    writeFileSync(path, '# mine\n');
    expect(await run('darwin')).toEqual([0, 'Notifications are on.\n']);
    expect(await run('darwin', 'off')).toEqual([0, 'Notifications are off.\n']);
    expect(readConfig(path).notifications).toBe(false);
    expect(await run('darwin', 'on', '--json')).toEqual([0, '{\n  "notifications": true\n}\n']);
    expect(await run('darwin', 'test')).toEqual([0, expect.stringContaining('System Settings')]);
    expect(await run('darwin', 'test')).toEqual([1, 'macOS did not accept the notification: not permitted\n']);
    await expect(run('darwin', 'maybe')).rejects.toThrow('Write "notifications on", "notifications off" or "notifications test".');
  });

  it('changes nothing elsewhere, and says so', async () => {
    const { length } = shown;
    expect(await run('linux')).toEqual([0, `${NEEDS_MACOS}\n`]);
    expect(await run('linux', 'off')).toEqual([0, `${NEEDS_MACOS}\n`]);
    for (const word of ['on', 'test']) expect(await run('linux', word)).toEqual([1, `${NEEDS_MACOS}\n`]);
    expect(shown).toHaveLength(length);
  });
});
