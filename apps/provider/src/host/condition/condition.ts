/**
 * How the machine is at this moment: hot, short of memory, on battery. Placement spares one that is in trouble. A reading that
 * cannot be had counts as no trouble, because most machines have no battery and some tell nothing of their heat.
 */

export interface HostCondition {
  readonly thermal: 'nominal' | 'fair' | 'serious' | 'critical';
  readonly memoryPressure: 'normal' | 'warning' | 'critical';
  /** `low_battery`: on battery, and not for long any more. */
  readonly power: 'mains' | 'battery' | 'low_battery';
}

export const NORMAL_CONDITION: HostCondition = { thermal: 'nominal', memoryPressure: 'normal', power: 'mains' };

/** Each from well to bad. */
const ORDER: { readonly [Part in keyof HostCondition]: readonly HostCondition[Part][] } = {
  thermal: ['nominal', 'fair', 'serious', 'critical'],
  memoryPressure: ['normal', 'warning', 'critical'],
  power: ['mains', 'battery', 'low_battery'],
};

/** On battery, charge in percent at which it is low. */
export const LOW_BATTERY_PERCENT = 20;

export function powerOf(onBattery: boolean, percent: number | null): HostCondition['power'] {
  if (!onBattery) return 'mains';
  return percent !== null && percent <= LOW_BATTERY_PERCENT ? 'low_battery' : 'battery';
}

/** The worse of two readings of one part. */
export function worse<Part extends keyof HostCondition>(part: Part, a: HostCondition[Part], b: HostCondition[Part]): HostCondition[Part] {
  return rank(part, a) >= rank(part, b) ? a : b;
}

export function isSame(a: HostCondition, b: HostCondition): boolean {
  return a.thermal === b.thermal && a.memoryPressure === b.memoryPressure && a.power === b.power;
}

/** Readings for which something has to have been better before it counts as better. */
const READINGS_UNTIL_BETTER = 3;

/**
 * Readings made steady: what gets worse counts at once, what gets better only when it has been so for three readings, and then as
 * the worst of them. A value that goes to and fro at an edge is reported once.
 */
export class ConditionFilter {
  #current: HostCondition = NORMAL_CONDITION;
  #readings: HostCondition[] = [];

  get current(): HostCondition {
    return this.#current;
  }

  /** Takes in a reading. Whether what is current has changed by it. */
  update(reading: HostCondition): boolean {
    this.#readings = [...this.#readings, reading].slice(-READINGS_UNTIL_BETTER);
    const before = this.#current;
    this.#current = { thermal: this.#steady('thermal'), memoryPressure: this.#steady('memoryPressure'), power: this.#steady('power') };
    return !isSame(before, this.#current);
  }

  #steady<Part extends keyof HostCondition>(part: Part): HostCondition[Part] {
    const worst = this.#readings.map((reading) => reading[part]).reduce((a, b) => worse(part, a, b));
    const current = this.#current[part];
    if (rank(part, worst) > rank(part, current)) return worst;
    return this.#readings.length < READINGS_UNTIL_BETTER ? current : worst;
  }
}

function rank<Part extends keyof HostCondition>(part: Part, value: HostCondition[Part]): number {
  return ORDER[part].indexOf(value);
}
