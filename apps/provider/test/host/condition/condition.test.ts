/** Host condition from recorded texts of Macs and simulated Linux folders, and its filter. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { temporaryDirectory } from '../../../../../test/support/temporary-directory.js';
import { ConditionFilter, NORMAL_CONDITION } from '../../../src/host/condition/condition.js';
import { type MacTexts, macCondition, readCondition } from '../../../src/host/condition/condition-monitor.js';

const WELL: MacTexts = {
  thermalWarning: [
    'Note: No thermal warning level has been recorded',
    'Note: No performance warning level has been recorded',
    'Note: No CPU power status has been recorded',
    '',
  ].join('\n'),
  battery: "Now drawing from 'AC Power'\n -InternalBattery-0 (id=22347875)\t80%; AC attached; not charging present: true\n",
  thermalPressure: 'com.apple.system.thermalpressurelevel 0\n',
  memoryLevel: '1\n',
};
const throttled = (limit: number): string =>
  `2026-08-20 05:08:37 -0700 CPU Power notify\n\tCPU_Scheduler_Limit \t= 100\n\tCPU_Available_CPUs \t= 12\n\tCPU_Speed_Limit \t= ${limit}\n`;
const onBattery = (percent: number): string =>
  `Now drawing from 'Battery Power'\n -InternalBattery-0 (id=22347875)\t${percent}%; discharging; 4:32 remaining present: true\n`;

describe('a Mac', () => {
  it('is normal without stress or without readings', () => {
    expect(macCondition(WELL)).toEqual(NORMAL_CONDITION);
    expect(macCondition({ thermalWarning: '', battery: '', thermalPressure: '', memoryLevel: '' })).toEqual(NORMAL_CONDITION);
    expect(macCondition({ ...WELL, battery: "Now drawing from 'AC Power'\n", thermalPressure: 'unknown\n', memoryLevel: 'x' })).toEqual(
      NORMAL_CONDITION,
    );
  });

  it.each([
    ['thermal', 'fair', { thermalPressure: 'com.apple.system.thermalpressurelevel 1\n' }],
    ['thermal', 'serious', { thermalPressure: 'com.apple.system.thermalpressurelevel 2\n' }],
    ['thermal', 'critical', { thermalPressure: 'com.apple.system.thermalpressurelevel 3\n' }],
    ['thermal', 'fair', { thermalWarning: throttled(80) }],
    ['thermal', 'serious', { thermalWarning: throttled(50) }],
    ['thermal', 'serious', { thermalWarning: 'Thermal Warning Level = 5\n' }],
    [
      'thermal',
      'critical',
      { thermalWarning: 'Thermal Warning Level = 10\n', thermalPressure: 'com.apple.system.thermalpressurelevel 1\n' },
    ],
    ['memoryPressure', 'warning', { memoryLevel: '2\n' }],
    ['memoryPressure', 'critical', { memoryLevel: '4\n' }],
    ['power', 'battery', { battery: onBattery(85) }],
    ['power', 'battery', { battery: "Now drawing from 'UPS Power'\n -UPS (id=1)\t100%; discharging; present: true\n" }],
    ['power', 'low_battery', { battery: onBattery(20) }],
    [
      'power',
      'mains',
      { battery: "Now drawing from 'AC Power'\n -InternalBattery-0 (id=1)\t9%; charging; 1:02 remaining present: true\n" },
    ],
  ] as const)('has %s %s', (part, value, texts) => {
    expect(macCondition({ ...WELL, ...texts })).toEqual({ ...NORMAL_CONDITION, [part]: value });
  });
});

describe('a Linux machine', () => {
  let root: string;
  beforeEach(() => {
    root = temporaryDirectory('host');
  });

  const write = (files: Record<string, string>): void => {
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(root, path)), { recursive: true });
      writeFileSync(join(root, path), `${text}\n`);
    }
  };
  const read = () => readCondition({ platform: 'linux', root });
  const zone = (temp: number) => ({
    'sys/class/thermal/thermal_zone0/temp': String(temp),
    'sys/class/thermal/thermal_zone0/trip_point_0_type': 'critical',
    'sys/class/thermal/thermal_zone0/trip_point_0_temp': '105000',
    'sys/class/thermal/thermal_zone0/trip_point_1_type': 'passive',
    'sys/class/thermal/thermal_zone0/trip_point_1_temp': '95000',
    'sys/class/thermal/thermal_zone1/temp': '200000',
    'sys/class/thermal/thermal_zone1/trip_point_0_type': 'passive',
    'sys/class/thermal/thermal_zone1/trip_point_0_temp': '-274000',
  });
  const battery = (status: string, capacity: number, online: 0 | 1) => ({
    'sys/class/power_supply/AC/type': 'Mains',
    'sys/class/power_supply/AC/online': String(online),
    'sys/class/power_supply/BAT0/type': 'Battery',
    'sys/class/power_supply/BAT0/status': status,
    'sys/class/power_supply/BAT0/capacity': String(capacity),
    'sys/class/power_supply/mouse/type': 'Battery',
    'sys/class/power_supply/mouse/scope': 'Device',
    'sys/class/power_supply/mouse/status': 'Discharging',
    'sys/class/power_supply/mouse/capacity': '3',
  });
  const pressure = (some: string, full: string) => ({
    'proc/pressure/memory': `some avg10=${some} avg60=0.00 avg300=0.00 total=5\nfull avg10=${full} avg60=0.00 avg300=0.00 total=5`,
  });

  it('without any of the files is in no trouble', async () => {
    expect(await read()).toEqual(NORMAL_CONDITION);
    write({ 'sys/class/thermal/thermal_zone0/temp': 'hot', 'sys/class/power_supply/BAT0/type': '', 'proc/pressure/memory': 'x' });
    expect(await read()).toEqual(NORMAL_CONDITION);
  });

  it('has the heat of its zones against their trip points', async () => {
    const heats: string[] = [];
    for (const temp of [50_000, 88_000, 96_000, 103_000]) {
      write(zone(temp));
      heats.push((await read()).thermal);
    }
    expect(heats).toEqual(['nominal', 'fair', 'serious', 'critical']);
  });

  it('runs on its own battery or on mains', async () => {
    const powers: string[] = [];
    for (const [status, charge, online] of [
      ['Charging', 10, 1],
      ['Discharging', 60, 0],
      ['Discharging', 20, 0],
      ['Discharging', 20, 1],
    ] as const) {
      write(battery(status, charge, online));
      powers.push((await read()).power);
    }
    expect(powers).toEqual(['mains', 'battery', 'low_battery', 'mains']);
  });

  it('is short of memory when tasks wait for memory', async () => {
    const pressures: string[] = [];
    for (const [some, full] of [
      ['9.99', '0.00'],
      ['12.50', '3.00'],
      ['80.00', '25.00'],
    ] as const) {
      write(pressure(some, full));
      pressures.push((await read()).memoryPressure);
    }
    expect(pressures).toEqual(['normal', 'warning', 'critical']);
  });
});

describe('the filtered condition', () => {
  const hot = (thermal: (typeof NORMAL_CONDITION)['thermal']) => ({ ...NORMAL_CONDITION, thermal });

  it('worsens at once and improves after several readings', () => {
    const steady = new ConditionFilter();
    const news = ['nominal', 'critical', 'nominal', 'nominal', 'nominal', 'nominal'].map((heat) =>
      steady.update(hot(heat as 'nominal')) ? steady.current.thermal : '',
    );
    expect(news).toEqual(['', 'critical', '', '', 'nominal', '']);
  });

  it('changes once for a fluctuating value', () => {
    const steady = new ConditionFilter();
    let changes = 0;
    for (let reading = 0; reading < 100; reading++) if (steady.update(hot(reading % 2 === 0 ? 'serious' : 'critical'))) changes++;
    expect([changes, steady.current.thermal]).toEqual([2, 'critical']);
  });

  it('gets better by steps', () => {
    const steady = new ConditionFilter();
    for (const heat of ['critical', 'serious', 'fair', 'serious'] as const) steady.update(hot(heat));
    expect(steady.current.thermal).toBe('serious');
  });
});
