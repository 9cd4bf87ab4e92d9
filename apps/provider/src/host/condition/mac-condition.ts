/**
 * Condition of a Mac, from commands that need no root. Missing or unknown output is treated as normal.
 *
 * Heat: `pmset -g therm` (pmset(1)) and `notifyutil` (OSThermalNotification.h). Power: `pmset -g batt`.
 *
 * Memory: `kern.memorystatus_vm_pressure_level` (1 normal, 2 warning, 4 critical).
 */
import { type HostCondition, powerOf, worse } from './condition.js';

export const MAC_COMMANDS = {
  therm: ['/usr/bin/pmset', '-g', 'therm'],
  batt: ['/usr/bin/pmset', '-g', 'batt'],
  pressure: ['/usr/bin/notifyutil', '-g', 'com.apple.system.thermalpressurelevel'],
  memory: ['/usr/sbin/sysctl', '-n', 'kern.memorystatus_vm_pressure_level'],
} as const;

export type MacTexts = { readonly [Name in keyof typeof MAC_COMMANDS]: string };

export function macCondition(texts: MacTexts): HostCondition {
  return {
    thermal: worse('thermal', thermalPressure(texts.pressure), thermalWarning(texts.therm)),
    memoryPressure: memoryLevel(texts.memory),
    power: battery(texts.batt),
  };
}

/** Reads `com.apple.system.thermalpressurelevel 1`. Levels 0 to 4: nominal, moderate, heavy, trapping, sleeping. */
function thermalPressure(text: string): HostCondition['thermal'] {
  const level = Number(/thermalpressurelevel\s+(\d+)\s*$/m.exec(text)?.[1] ?? 0);
  return (['nominal', 'fair', 'serious', 'critical', 'critical'] as const)[level] ?? 'nominal';
}

/** Levels of IOPM.h: 5 danger, 100 warning, 10 critical, 110 trap. A CPU speed limit below 100 % means throttling. */
function thermalWarning(text: string): HostCondition['thermal'] {
  const level = Number(/Thermal Warning Level\s*=\s*(\d+)/i.exec(text)?.[1] ?? 0);
  if (level === 10 || level === 110) return 'critical';
  const limit = Number(/CPU_Speed_Limit\s*=\s*(\d+)/.exec(text)?.[1] ?? 100);
  if (level === 5 || level === 100 || limit < 70) return 'serious';
  return limit < 100 ? 'fair' : 'nominal';
}

function memoryLevel(text: string): HostCondition['memoryPressure'] {
  const level = text.trim();
  if (level === '4') return 'critical';
  return level === '2' ? 'warning' : 'normal';
}

/** Reads `Now drawing from 'Battery Power'`, and the charge from `85%; discharging`. A UPS is treated as a battery. */
function battery(text: string): HostCondition['power'] {
  const source = /Now drawing from '([^']+)'/.exec(text)?.[1];
  const percent = /\t(\d{1,3})%;/.exec(text)?.[1];
  return powerOf(source === 'Battery Power' || source === 'UPS Power', percent === undefined ? null : Number(percent));
}
