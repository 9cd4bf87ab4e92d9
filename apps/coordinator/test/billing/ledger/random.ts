/** Random choices from a seeded generator of numbers in [0, 1). */

/** An integer from 0 to `max`, inclusive. */
export function upTo(random: () => number, max: number): number {
  return Math.floor(random() * (max + 1));
}

export function oneOf<T>(random: () => number, list: readonly T[]): T {
  const one = list[Math.floor(random() * list.length)];
  if (one === undefined) throw new RangeError('nothing to choose from');
  return one;
}
