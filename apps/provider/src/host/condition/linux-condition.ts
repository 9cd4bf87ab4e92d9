/**
 * Condition of a Linux machine. Unreadable values are treated as normal.
 *
 * Heat: thermal zones against their trip points (sysfs-thermal). Power: sysfs-class-power. Memory: /proc/pressure/memory.
 */
import { type HostCondition, NORMAL_CONDITION, powerOf, worse } from './condition.js';

/** File contents of one folder by file name, such as `temp` and `trip_point_0_type`. */
export type Folder = Readonly<Record<string, string>>;

interface LinuxTexts {
  /** Thermal zones, one per /sys/class/thermal/thermal_zone*. */
  readonly zones: readonly Folder[];
  /** Power supplies, one per /sys/class/power_supply/*. */
  readonly supplies: readonly Folder[];
  /** /proc/pressure/memory. */
  readonly pressure: string;
}

/** Distance below a trip point at which a zone is already reported as `fair` or `critical`, in millidegrees Celsius. */
const NEAR_PASSIVE = 8000;
const NEAR_CRITICAL = 3000;
/** Percent of the last ten seconds in which some or all tasks waited for memory. */
const SOME_WAIT = 10;
const ALL_WAIT = 10;

export function linuxCondition({ zones, supplies, pressure }: LinuxTexts): HostCondition {
  return {
    thermal: zones.map(zoneHeat).reduce((a, b) => worse('thermal', a, b), NORMAL_CONDITION.thermal),
    memoryPressure: memoryOf(pressure),
    power: supplyPower(supplies),
  };
}

function zoneHeat(zone: Folder): HostCondition['thermal'] {
  const heat = number(zone.temp);
  if (heat === null) return 'nominal';
  let hottest: HostCondition['thermal'] = 'nominal';
  for (const [name, text] of Object.entries(zone)) {
    const index = /^trip_point_(\d+)_type$/.exec(name)?.[1];
    const limit = index === undefined ? null : number(zone[`trip_point_${index}_temp`]);
    // Zones without such a trip point report 0 or a negative value.
    if (limit === null || limit <= 0) continue;
    hottest = worse('thermal', hottest, atTrip(text.trim(), heat - limit));
  }
  return hottest;
}

/** `over` is the distance above the trip point in millidegrees Celsius, negative below. */
function atTrip(type: string, over: number): HostCondition['thermal'] {
  switch (type) {
    case 'critical':
    case 'hot':
      return over >= -NEAR_CRITICAL ? 'critical' : 'nominal';
    case 'passive':
      if (over >= 0) return 'serious';
      return over >= -NEAR_PASSIVE ? 'fair' : 'nominal';
    default:
      return 'nominal';
  }
}

function memoryOf(text: string): HostCondition['memoryPressure'] {
  const average = (who: string): number => Number(new RegExp(`^${who} avg10=(\\d+(?:\\.\\d+)?)`, 'm').exec(text)?.[1] ?? 0);
  if (average('full') >= ALL_WAIT) return 'critical';
  return average('some') >= SOME_WAIT ? 'warning' : 'normal';
}

/** Batteries of mice and the like have the scope `Device`. */
function supplyPower(supplies: readonly Folder[]): HostCondition['power'] {
  const type = ({ type = '' }: Folder): string => type.trim();
  const own = supplies.filter(({ scope = '' }) => scope.trim() !== 'Device');
  const mains = own.some((supply) => type(supply) !== 'Battery' && supply.online?.trim() === '1');
  const batteries = own.filter((supply) => type(supply) === 'Battery' && supply.status?.trim() === 'Discharging');
  const charges = batteries.map(({ capacity }) => number(capacity)).filter((charge) => charge !== null);
  return powerOf(!mains && batteries.length > 0, charges.length === 0 ? null : Math.max(...charges));
}

function number(text: string | undefined): number | null {
  return text !== undefined && /^\s*-?\d+\s*$/.test(text) ? Number(text) : null;
}
