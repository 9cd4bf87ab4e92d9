/**
 * Condition of a Linux machine, from texts of /sys and /proc. Unreadable values are treated as normal.
 *
 * Heat: temperatures of thermal zones, compared with the limits that the hardware declares (trip points, sysfs-thermal).
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
/** Percent of the last ten seconds in which tasks waited for memory: some tasks for `warning`, all for `critical` (PSI). */
const WARNING_SOME_PERCENT = 10;
const CRITICAL_FULL_PERCENT = 10;

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
    // 0 or a negative value stands for a missing trip point.
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
  if (average('full') >= CRITICAL_FULL_PERCENT) return 'critical';
  return average('some') >= WARNING_SOME_PERCENT ? 'warning' : 'normal';
}

/** Power source by sysfs-class-power. Ignores the scope `Device`: batteries of mice and the like. */
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
