/**
 * The condition of a Linux machine, from the files of /sys and /proc: thermal zones against their own trip points (kernel:
 * sysfs-thermal), batteries and mains (sysfs-class-power), and how long tasks wait for memory (/proc/pressure/memory). Pure; what is
 * missing or unreadable tells of no trouble.
 */
import { type HostCondition, NORMAL_CONDITION, powerOf, worse } from './condition.js';

/** Files of one folder by their names, such as `temp` and `trip_point_0_type`. */
export type Folder = Readonly<Record<string, string>>;

export interface LinuxTexts {
  /** One for each of /sys/class/thermal/thermal_zone*. */
  readonly zones: readonly Folder[];
  /** One for each of /sys/class/power_supply/*. */
  readonly supplies: readonly Folder[];
  /** /proc/pressure/memory. */
  readonly pressure: string;
}

/** So close below a trip point that a machine counts as warm or as too hot, in thousandths of a degree. */
const NEAR_PASSIVE = 8000;
const NEAR_CRITICAL = 3000;
/** Share of the last ten seconds in which some task, or every task, waited for memory. Percent. */
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
    // Zones without a limit of this kind say 0, or less than nothing.
    if (limit === null || limit <= 0) continue;
    hottest = worse('thermal', hottest, atTrip(text.trim(), heat - limit));
  }
  return hottest;
}

/** `over`: by how much the trip point is passed, in thousandths of a degree. */
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
