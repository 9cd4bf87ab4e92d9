/** One-sided tests of whether updated machines do worse than others. Each returns a p-value from 0 to 1, where 1 is no evidence. */

/** Size of a group, and the number of bad members. */
export interface Proportion {
  readonly bad: number;
  readonly count: number;
}

/** Failed (`bad`) and total requests of one machine, or of one owner's machines. */
export interface Cluster {
  readonly bad: number;
  readonly count: number;
}

const LOG_FACTORIALS = [0, 0];

function logFactorial(n: number): number {
  for (let next = LOG_FACTORIALS.length; next <= n; next++) LOG_FACTORIALS.push((LOG_FACTORIALS[next - 1] ?? 0) + Math.log(next));
  return LOG_FACTORIALS[n] ?? 0;
}

function logChoose(n: number, k: number): number {
  return logFactorial(n) - logFactorial(k) - logFactorial(n - k);
}

/** Fisher's exact test (hypergeometric). Exact for small groups, for which a normal approximation is wrong. */
export function fisherExact(updated: Proportion, others: Proportion): number {
  const all = updated.count + others.count;
  const bad = updated.bad + others.bad;
  if (updated.bad === 0 || others.count === 0) return 1;
  const logTotal = logChoose(all, updated.count);
  let p = 0;
  for (let k = updated.bad; k <= Math.min(bad, updated.count); k++) {
    if (updated.count - k > all - bad) continue;
    p += Math.exp(logChoose(bad, k) + logChoose(all - bad, updated.count - k) - logTotal);
  }
  return Math.min(1, p);
}

/**
 * Failure rate of a group and its variance: ratio estimator of cluster sampling (Cochran, 1977).
 *
 * Machines vary independently, their requests do not.
 */
export function clusteredRate(clusters: readonly Cluster[]): { readonly rate: number; readonly variance: number; readonly count: number } {
  let bad = 0;
  let count = 0;
  for (const one of clusters) {
    bad += one.bad;
    count += one.count;
  }
  const machines = clusters.length;
  if (count === 0 || machines < 2) return { rate: count === 0 ? 0 : bad / count, variance: Number.POSITIVE_INFINITY, count };
  const rate = bad / count;
  let squares = 0;
  for (const one of clusters) squares += (one.bad - rate * one.count) ** 2;
  const between = ((machines / (machines - 1)) * squares) / count ** 2;
  // Minimum variance from chance alone, because equal machines would seem exact. The added half keeps rates of 0 and 1 uncertain.
  const smoothed = (bad + 0.5) / (count + 1);
  return { rate, variance: Math.max(between, (smoothed * (1 - smoothed)) / count), count };
}

/** Maximum weight of a cluster, as a multiple of the median count. */
const MAX_WEIGHT = 5;

/** Reduces clusters above `MAX_WEIGHT` to this weight, so that no single machine decides the rate of a group. */
export function limitWeights<Item extends Cluster>(clusters: readonly Item[]): Item[] {
  const counts = clusters.map(({ count }) => count).sort((a, b) => a - b);
  const limit = MAX_WEIGHT * (counts[Math.floor((counts.length - 1) / 2)] ?? 0);
  return clusters.map((cluster) => {
    const { bad, count } = cluster;
    return count <= limit ? cluster : { ...cluster, bad: (bad * limit) / count, count: limit };
  });
}

export function higherRate(updated: readonly Cluster[], others: readonly Cluster[]): number {
  const [a, b] = [clusteredRate(updated), clusteredRate(others)];
  if (a.count === 0 || b.count === 0) return 1;
  return upperTail((a.rate - b.rate) / Math.sqrt(a.variance + b.variance));
}

/**
 * Tests whether the mean of the first group is lower: Welch's statistic, with the normal distribution instead of Student's.
 *
 * `minDeviation`: lower bound of the standard deviation, because small groups look too uniform.
 */
export function lowerMean(updated: readonly number[], others: readonly number[], minDeviation: number): number {
  const [a, b] = [meanOf(updated, minDeviation), meanOf(others, minDeviation)];
  return a === null || b === null ? 1 : upperTail((b.mean - a.mean) / Math.sqrt(a.variance + b.variance));
}

/** Mean, and the variance of the mean. Null with fewer than two values. */
function meanOf(values: readonly number[], minDeviation: number): { readonly mean: number; readonly variance: number } | null {
  if (values.length < 2) return null;
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return { mean, variance: Math.max(squares / (values.length - 1), minDeviation ** 2) / values.length };
}

/** Probability that a standard normal variable exceeds `z` (Abramowitz and Stegun 26.2.17, error below 7.5e-8). */
function upperTail(z: number): number {
  if (Number.isNaN(z)) return 1;
  if (z < 0) return 1 - upperTail(-z);
  const t = 1 / (1 + 0.2316419 * z);
  const polynomial = t * (0.31938153 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))));
  return (Math.exp((-z * z) / 2) / Math.sqrt(2 * Math.PI)) * polynomial;
}
