/** `HostCondition`: heat, memory pressure and power of this machine. The coordinator prefers machines with normal conditions. */

export interface HostCondition {
  readonly thermal: 'nominal' | 'fair' | 'serious' | 'critical';
  readonly memoryPressure: 'normal' | 'warning' | 'critical';
  /** With `low_battery`, the machine runs on a battery with little charge. */
  readonly power: 'mains' | 'battery' | 'low_battery';
}

export const NORMAL_CONDITION: HostCondition = { thermal: 'nominal', memoryPressure: 'normal', power: 'mains' };

/** Values of each part, from best to worst. */
const ORDER: { readonly [Part in keyof HostCondition]: readonly HostCondition[Part][] } = {
  thermal: ['nominal', 'fair', 'serious', 'critical'],
  memoryPressure: ['normal', 'warning', 'critical'],
  power: ['mains', 'battery', 'low_battery'],
};

/** Charge in percent at or below which a battery is low. */
const LOW_BATTERY_PERCENT = 20;

/** `percent` is the battery's charge; null if unknown. */
export function powerOf(onBattery: boolean, percent: number | null): HostCondition['power'] {
  if (!onBattery) return 'mains';
  return percent !== null && percent <= LOW_BATTERY_PERCENT ? 'low_battery' : 'battery';
}

/** The worse of two values. */
export function worse<Part extends keyof HostCondition>(part: Part, a: HostCondition[Part], b: HostCondition[Part]): HostCondition[Part] {
  return rank(part, a) >= rank(part, b) ? a : b;
}

export function isSame(a: HostCondition, b: HostCondition): boolean {
  return a.thermal === b.thermal && a.memoryPressure === b.memoryPressure && a.power === b.power;
}

/** Consecutive better readings before an improvement takes effect. */
const READINGS_UNTIL_BETTER = 3;

/** Filters readings: a worse value takes effect at once, a better value after three readings in a row. Normal before the first. */
export class ConditionFilter {
  #current: HostCondition = NORMAL_CONDITION;
  #readings: HostCondition[] = [];

  get current(): HostCondition {
    return this.#current;
  }

  /** Adds a reading. Returns whether the filtered condition changed. */
  update(reading: HostCondition): boolean {
    this.#readings = [...this.#readings, reading].slice(-READINGS_UNTIL_BETTER);
    const before = this.#current;
    this.#current = {
      thermal: this.#smoothed('thermal'),
      memoryPressure: this.#smoothed('memoryPressure'),
      power: this.#smoothed('power'),
    };
    return !isSame(before, this.#current);
  }

  #smoothed<Part extends keyof HostCondition>(part: Part): HostCondition[Part] {
    const worst = this.#readings.map((reading) => reading[part]).reduce((a, b) => worse(part, a, b));
    const current = this.#current[part];
    if (rank(part, worst) > rank(part, current)) return worst;
    return this.#readings.length < READINGS_UNTIL_BETTER ? current : worst;
  }
}

function rank<Part extends keyof HostCondition>(part: Part, value: HostCondition[Part]): number {
  return ORDER[part].indexOf(value);
}
