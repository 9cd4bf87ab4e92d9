/** Commands of the owner from the console: what the machine executes, and what it refuses. */
import { randomUUID } from 'node:crypto';
import type { MachineSettings, OwnerAction } from '@inference/protocol';
import { beforeEach, describe, expect, it } from 'vitest';
import { ConfigError } from '../../src/config/read-config.js';
import { RemoteControl, type RemoteControlOptions } from '../../src/daemon/remote-control.js';
import type { Pause } from '../../src/host/availability/availability.js';
import { windowText } from '../../src/host/availability/parse-schedule.js';
import { pauseText, readPause } from '../../src/host/availability/pause.js';

const NOW = Date.UTC(2026, 10, 25, 14, 2);
const DAY_MS = 86_400_000;

let pause: Pause | null;
let schedule: string;
let calls: string[];
let now: number;
beforeEach(() => {
  [pause, schedule, calls, now] = [null, '', [], NOW];
});

const settings = (): MachineSettings => ({
  remote_control: true,
  pause: pause === null ? null : { by: pause.console === undefined ? 'machine' : 'console', until: pause.until },
  schedule: { windows: schedule, time_zone: 'UTC' },
  models: [],
  models_fixed: false,
});

function remoteControl(changes: Partial<RemoteControlOptions> = {}): RemoteControl {
  return new RemoteControl({
    isAllowed: () => true,
    account: () => ({ name: 'ada@example.com' }),
    pause: () => pause,
    setPause: (next) => {
      calls.push('setPause');
      pause = next;
    },
    setSchedule: (windows) => {
      schedule = windows.map(windowText).join(', ');
    },
    setModel: (id, isServed) => {
      calls.push(`${isServed ? 'serve' : 'drop'} ${id}`);
      return id === 'pico' ? null : 'model_unknown';
    },
    settings,
    clockSkewMs: () => 0,
    onCommand: () => {},
    now: () => now,
    ...changes,
  });
}

const command = (action: OwnerAction | { kind: string; [member: string]: unknown }, changes: object = {}) =>
  ({ type: 'owner_command', command_id: randomUUID(), expires_at: NOW + 10_000, action, ...changes }) as const;

describe('pause and resume', () => {
  it('pauses with time and account, and resumes', () => {
    const control = remoteControl();
    const result = control.execute(command({ kind: 'pause', until: NOW + DAY_MS }));
    expect(result).toMatchObject({ refusal: null, settings: { pause: { by: 'console', until: NOW + DAY_MS } } });
    expect(pause).toEqual({ until: NOW + DAY_MS, console: { at: NOW, account: 'ada@example.com' } });
    expect(control.status.last).toEqual({ at: NOW, kind: 'pause', refusal: null, account: 'ada@example.com' });
    // As after a restart.
    expect(readPause(pauseText(pause as Pause), NOW)).toEqual(pause);
    expect(control.execute(command({ kind: 'resume' })).settings.pause).toBeNull();
    expect(control.execute(command({ kind: 'resume' })).refusal).toBeNull();
  });

  it("neither ends nor replaces the machine's own pause", () => {
    pause = { until: null };
    for (const action of [{ kind: 'resume' }, { kind: 'pause', until: NOW + 1 }] as const) {
      expect(remoteControl().execute(command(action))).toMatchObject({
        refusal: 'paused_on_machine',
        settings: { pause: { by: 'machine', until: null } },
      });
    }
    expect(calls).toEqual([]);
  });

  it.each([NOW - 1, NOW, NOW + 31 * DAY_MS])('refuses a pause until %d', (until) => {
    expect(remoteControl().execute(command({ kind: 'pause', until })).refusal).toBe('time_invalid');
  });
});

describe('schedule and models', () => {
  it("accepts the owner's grammar, and refuses other text", () => {
    const control = remoteControl();
    expect(control.execute(command({ kind: 'set_schedule', schedule: 'weekdays 22-7' })).settings.schedule.windows).toBe(
      'mon-fri 22:00-07:00',
    );
    expect(control.execute(command({ kind: 'set_schedule', schedule: 'mon; rm -rf /' })).refusal).toBe('schedule_invalid');
    expect(schedule).toBe('mon-fri 22:00-07:00');
    expect(control.execute(command({ kind: 'set_schedule', schedule: '' })).settings.schedule.windows).toBe('');
  });

  it('passes ids of models on, and the reason of a refusal back', () => {
    const control = remoteControl();
    expect(control.execute(command({ kind: 'set_model', model: 'pico', served: true })).refusal).toBeNull();
    expect(control.execute(command({ kind: 'set_model', model: 'other', served: false })).refusal).toBe('model_unknown');
    expect(calls).toEqual(['serve pico', 'drop other']);
  });

  it('reports a damaged settings file and a full disk with different codes', () => {
    const failing = (error: Error) =>
      remoteControl({
        setSchedule: () => {
          throw error;
        },
      });
    const action = { kind: 'set_schedule', schedule: '' } as const;
    expect(failing(new ConfigError('config.toml', 1, 1, 'bad')).execute(command(action)).refusal).toBe('settings_invalid');
    expect(failing(new Error('ENOSPC')).execute(command(action)).refusal).toBe('not_stored');
  });
});

describe('every command', () => {
  it.each([
    { kind: 'run', shell: 'id' },
    { kind: 'pause' },
    { kind: 'pause', until: null, path: '/etc' },
    { kind: 'set_model', model: '../../etc/passwd', served: true },
    { kind: 'set_schedule', schedule: 'x'.repeat(2049) },
  ])('is refused unless it matches the schema: %j', (action) => {
    expect(remoteControl().execute(command(action)).refusal).toBe('not_supported');
    expect(calls).toEqual([]);
  });

  it('is refused while forbidden, without a link, and after its expiry', () => {
    const resume = command({ kind: 'resume' });
    expect(remoteControl({ isAllowed: () => false }).execute(resume).refusal).toBe('remote_control_off');
    expect(remoteControl({ account: () => null }).execute(resume).refusal).toBe('not_linked');
    expect(remoteControl().execute({ ...resume, expires_at: NOW - 1 }).refusal).toBe('expired');
    // A clock that is an hour fast.
    now = NOW + 3_600_000;
    expect(remoteControl({ clockSkewMs: () => 3_600_000 }).execute(resume).refusal).toBeNull();
  });

  it('is executed once per id', () => {
    const control = remoteControl();
    const first = command({ kind: 'pause', until: null });
    control.execute(first);
    pause = null;
    expect(control.execute(first)).toMatchObject({ refusal: null, settings: { pause: null } });
    expect(calls).toEqual(['setPause']);
  });

  it('is executed at a retry with the same id if it came too late before', () => {
    const control = remoteControl();
    const first = command({ kind: 'pause', until: null }, { expires_at: NOW - 1 });
    expect(control.execute(first).refusal).toBe('expired');
    expect(control.execute({ ...first, expires_at: NOW + 10_000 }).refusal).toBeNull();
    expect(calls).toEqual(['setPause']);
  });

  it('is bounded in rate', () => {
    const control = remoteControl();
    const refusals = Array.from({ length: 31 }, () => control.execute(command({ kind: 'resume' })).refusal);
    expect(refusals.filter((refusal) => refusal === 'too_many_commands')).toHaveLength(1);
    now = NOW + 60_000;
    expect(control.execute(command({ kind: 'resume' }, { expires_at: now + 1 })).refusal).toBeNull();
  });
});
