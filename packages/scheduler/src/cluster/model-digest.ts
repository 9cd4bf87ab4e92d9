/**
 * `ModelDigest` summarizes one coordinator's providers of one model: slots (capacity for one job each), queue length, and a few classes
 * of providers with similar speed.
 *
 * Coordinators of a cluster send digests to each other, and `chooseOwner` compares them.
 */
import { type CostModel, costOf, type Work } from '../cost/job-cost.js';
import { isUnprovenGroup, type OpenGroup, type PoolMember } from '../pool/provider-groups.js';
import type { ProviderPool } from '../pool/provider-pool.js';

/** Available providers of similar cost, with averages of their values. Rates and wait consider the running jobs. */
export interface ThroughputClass {
  /** The providers must load the model first; `waitMs` includes the load time. */
  readonly isCold: boolean;
  readonly freeSlots: number;
  /** Free slots and slots in use. */
  readonly totalSlots: number;
  /** Free slots of providers with trust level `hardware`. */
  readonly trustedFreeSlots: number;
  /** Rates that one additional job would get, in tokens per second. */
  readonly prefillTps: number;
  readonly decodeTps: number;
  /** Time before the prompt is computed, in milliseconds. */
  readonly waitMs: number;
  /** Penalty for recent failures, in milliseconds. */
  readonly penaltyMs: number;
}

export interface ModelDigest {
  /** Providers that take jobs now, or after a temporary state such as full slots. */
  readonly serving: number;
  /** Slots of serving providers that have the model in memory or are loading it. */
  readonly totalSlots: number;
  readonly freeSlots: number;
  /** Slots of providers with trust level `hardware`. */
  readonly trustedSlots: number;
  readonly trustedFreeSlots: number;
  /** Serving providers without the model in memory. */
  readonly cold: number;
  /** Serving providers that are loading the model. */
  readonly loading: number;
  /** Requests that wait at the coordinator. */
  readonly queueLength: number;
  /** Mean time of a job in its slot; null: unknown. */
  readonly meanServiceMs: number | null;
  /** Longest context, in tokens; null: no provider serves. */
  readonly maxContextTokens: number | null;
  /** As `<width>x<height>`; empty for text and embedding models. */
  readonly imageSizes: readonly string[];
  /** Classes with the model in memory or loading, then cold classes; each kind by ascending cost. */
  readonly classes: readonly ThroughputClass[];
}

/** A model that no provider serves. */
export const EMPTY_DIGEST: ModelDigest = {
  serving: 0,
  totalSlots: 0,
  freeSlots: 0,
  trustedSlots: 0,
  trustedFreeSlots: 0,
  cold: 0,
  loading: 0,
  queueLength: 0,
  meanServiceMs: null,
  maxContextTokens: null,
  imageSizes: [],
  classes: [],
};

/** Facts for a digest that are not in the provider pool. */
export interface DigestContext {
  readonly queueLength: number;
  readonly meanServiceMs: number | null;
  readonly imageSizes: readonly string[];
}

export type DecodedDigest =
  | { readonly kind: 'digest'; readonly digest: ModelDigest }
  | { readonly kind: 'rejected'; readonly reason: DigestFault };

export type DigestFault =
  | 'too_long'
  | 'not_json'
  | 'unknown_version'
  | 'wrong_shape'
  | 'wrong_count'
  | 'wrong_time'
  | 'wrong_rate'
  | 'wrong_image_size'
  | 'too_many_classes'
  | 'wrong_order'
  | 'inconsistent';

export const MAX_CLASSES = 16;
/** Enough for an image model with `MAX_IMAGE_SIZES`. */
export const MAX_DIGEST_CHARS = 2048;
export const MAX_IMAGE_SIZES = 64;

const VERSION = 1;
const MAX_COLD_CLASSES = 4;
const MAX_LOADED_CLASSES = MAX_CLASSES - MAX_COLD_CLASSES;
/** Maximum ratio of the highest to the lowest cost in the first class. The ratio grows by this factor with each further class. */
const CLASS_WIDTH = 1.05;
/** Request whose cost orders and classifies the groups. */
const TYPICAL_WORK: Work = { promptTokens: 500, completionTokens: 400 };
const MAX_COUNT = 100_000_000;
const MAX_TIME_MS = 1_000_000_000;
const MIN_TPS = 0.0001;
const MAX_TPS = 1_000_000;
const IMAGE_SIZE = /^[1-9][0-9]{1,3}x[1-9][0-9]{1,3}$/;
/** Lengths of the JSON arrays of a digest and of a class. */
const MEMBERS = 13;
const CLASS_MEMBERS = 8;

/** Summarizes a pool. Call `refresh` on the pool first. */
export function digestOf<S>(pool: ProviderPool<S>, { queueLength, meanServiceMs, imageSizes }: DigestContext): ModelDigest {
  const loaded: PricedGroup[] = [];
  const cold: PricedGroup[] = [];
  for (const group of pool.open) {
    const priced = pricedGroup(group, pool.constants.unprovenFactor);
    if (priced.freeSlots > 0) (group.traits.isCold ? cold : loaded).push(priced);
  }
  const loadedClasses = classesOf(loaded, false, MAX_LOADED_CLASSES);
  return {
    serving: pool.serving,
    totalSlots: pool.slots,
    freeSlots: sumOf(loadedClasses, ({ freeSlots }) => freeSlots),
    trustedSlots: pool.hardwareSlots,
    trustedFreeSlots: sumOf(loadedClasses, ({ trustedFreeSlots }) => trustedFreeSlots),
    cold: pool.cold,
    loading: pool.loading,
    queueLength,
    meanServiceMs: meanServiceMs === null ? null : roundedMs(meanServiceMs),
    maxContextTokens: pool.maxContextTokens,
    imageSizes: imageSizes.slice(0, MAX_IMAGE_SIZES),
    classes: [...loadedClasses, ...classesOf(cold, true, MAX_COLD_CLASSES)],
  };
}

/** Cost of a request in a class, by the scheduler's cost function, in milliseconds. */
export function classCostMs(one: ThroughputClass, work: Work): number {
  return costOf(costModelOfClass(one), work);
}

/** Encodes a digest as JSON arrays without member names, to keep the text short. */
export function encodeDigest(digest: ModelDigest): string {
  const { serving, totalSlots, freeSlots, trustedSlots, trustedFreeSlots, cold, loading, queueLength } = digest;
  const counts = [serving, totalSlots, freeSlots, trustedSlots, trustedFreeSlots, cold, loading, queueLength];
  const classes = digest.classes.map((one) => [
    one.isCold ? 1 : 0,
    one.freeSlots,
    one.totalSlots,
    one.trustedFreeSlots,
    one.prefillTps,
    one.decodeTps,
    one.waitMs,
    one.penaltyMs,
  ]);
  return JSON.stringify([VERSION, ...counts, digest.meanServiceMs, digest.maxContextTokens, digest.imageSizes, classes]);
}

/** Also checks that the numbers agree with each other. */
export function decodeDigest(text: string): DecodedDigest {
  if (text.length > MAX_DIGEST_CHARS) return rejectDigest('too_long');
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return rejectDigest('not_json');
  }
  if (!Array.isArray(value)) return rejectDigest('wrong_shape');
  const members: readonly unknown[] = value;
  if (members[0] !== VERSION) return rejectDigest('unknown_version');
  if (members.length !== MEMBERS) return rejectDigest('wrong_shape');
  const [, serving, totalSlots, freeSlots, trustedSlots, trustedFreeSlots, cold, loading, queueLength] = members;
  const [meanServiceMs, maxContextTokens, imageSizes, listed] = members.slice(9);
  if (!isCount(serving) || !isCount(totalSlots) || !isCount(freeSlots) || !isCount(trustedSlots)) return rejectDigest('wrong_count');
  if (!isCount(trustedFreeSlots) || !isCount(cold) || !isCount(loading) || !isCount(queueLength)) return rejectDigest('wrong_count');
  if (meanServiceMs !== null && !isTime(meanServiceMs)) return rejectDigest('wrong_time');
  if (maxContextTokens !== null && !isCount(maxContextTokens)) return rejectDigest('wrong_count');
  if (!Array.isArray(imageSizes) || !Array.isArray(listed)) return rejectDigest('wrong_shape');
  if (imageSizes.length > MAX_IMAGE_SIZES || !imageSizes.every(isImageSize)) return rejectDigest('wrong_image_size');
  if (listed.length > MAX_CLASSES) return rejectDigest('too_many_classes');
  const classes: ThroughputClass[] = [];
  for (const one of listed) {
    const decoded = decodeClass(one);
    if (typeof decoded === 'string') return rejectDigest(decoded);
    if (classes.at(-1)?.isCold === true && !decoded.isCold) return rejectDigest('wrong_order');
    classes.push(decoded);
  }
  const loaded = classes.filter(({ isCold }) => !isCold);
  const isConsistent =
    cold + loading <= serving &&
    freeSlots <= totalSlots &&
    trustedSlots <= totalSlots &&
    trustedFreeSlots <= Math.min(freeSlots, trustedSlots) &&
    freeSlots === sumOf(loaded, (one) => one.freeSlots) &&
    trustedFreeSlots === sumOf(loaded, (one) => one.trustedFreeSlots) &&
    sumOf(loaded, (one) => one.totalSlots) <= totalSlots;
  if (!isConsistent) return rejectDigest('inconsistent');
  const counts = { serving, totalSlots, freeSlots, trustedSlots, trustedFreeSlots, cold, loading, queueLength };
  return { kind: 'digest', digest: { ...counts, meanServiceMs, maxContextTokens, imageSizes, classes } };
}

interface PricedGroup {
  readonly costModel: CostModel;
  readonly costMs: number;
  readonly freeSlots: number;
  readonly totalSlots: number;
  readonly trustedFreeSlots: number;
}

/** Computes a group's slots and cost. Multiplies the cost of unproven providers by `unprovenFactor`, as in placement. */
function pricedGroup<S>(group: OpenGroup<S>, unprovenFactor: number): PricedGroup {
  const factor = isUnprovenGroup(group) ? unprovenFactor : 1;
  const { waitMs, msPerPromptToken, msPerCompletionToken, penaltyMs } = group.costModel;
  const costModel = {
    waitMs: waitMs * factor,
    msPerPromptToken: msPerPromptToken * factor,
    msPerCompletionToken: msPerCompletionToken * factor,
    penaltyMs: penaltyMs * factor,
  };
  const totalSlots = sumOf(group.members, ({ facts }: PoolMember<S>) => facts.slots);
  const freeSlots = totalSlots - sumOf(group.members, ({ facts }: PoolMember<S>) => facts.usedSlots);
  const trustedFreeSlots = group.traits.hasHardwareTrust ? freeSlots : 0;
  return { costModel, costMs: costOf(costModel, TYPICAL_WORK), freeSlots, totalSlots, trustedFreeSlots };
}

/** Merges groups of similar cost; the last class takes all remaining groups. */
function classesOf(groups: PricedGroup[], isCold: boolean, max: number): ThroughputClass[] {
  groups.sort((a, b) => a.costMs - b.costMs);
  const classes: ThroughputClass[] = [];
  let first = 0;
  while (first < groups.length) {
    const isLast = classes.length === max - 1;
    const limitMs = (groups[first] as PricedGroup).costMs * CLASS_WIDTH ** (classes.length + 1);
    let end = first + 1;
    while (end < groups.length && (isLast || (groups[end] as PricedGroup).costMs <= limitMs)) end++;
    classes.push(mergeGroups(groups.slice(first, end), isCold));
    first = end;
  }
  return classes;
}

/** Merges groups into one class. Rates, wait and penalty are means weighted by free slots. */
function mergeGroups(groups: readonly PricedGroup[], isCold: boolean): ThroughputClass {
  const freeSlots = sumOf(groups, (one) => one.freeSlots);
  const mean = (value: (costModel: CostModel) => number): number =>
    sumOf(groups, (one) => value(one.costModel) * one.freeSlots) / freeSlots;
  return {
    isCold,
    freeSlots,
    totalSlots: sumOf(groups, (one) => one.totalSlots),
    trustedFreeSlots: sumOf(groups, (one) => one.trustedFreeSlots),
    prefillTps: roundedTps(1000 / mean(({ msPerPromptToken }) => msPerPromptToken)),
    decodeTps: roundedTps(1000 / mean(({ msPerCompletionToken }) => msPerCompletionToken)),
    waitMs: roundedMs(mean(({ waitMs }) => waitMs)),
    penaltyMs: roundedMs(mean(({ penaltyMs }) => penaltyMs)),
  };
}

function costModelOfClass({ prefillTps, decodeTps, waitMs, penaltyMs }: ThroughputClass): CostModel {
  return { waitMs, msPerPromptToken: 1000 / prefillTps, msPerCompletionToken: 1000 / decodeTps, penaltyMs };
}

function decodeClass(value: unknown): ThroughputClass | DigestFault {
  if (!Array.isArray(value) || value.length !== CLASS_MEMBERS) return 'wrong_shape';
  const [cold, freeSlots, totalSlots, trustedFreeSlots, prefillTps, decodeTps, waitMs, penaltyMs] = value as readonly unknown[];
  if (cold !== 0 && cold !== 1) return 'wrong_shape';
  if (!isCount(freeSlots) || !isCount(totalSlots) || !isCount(trustedFreeSlots)) return 'wrong_count';
  if (freeSlots === 0 || freeSlots > totalSlots || trustedFreeSlots > freeSlots) return 'inconsistent';
  if (!isRate(prefillTps) || !isRate(decodeTps)) return 'wrong_rate';
  if (!isTime(waitMs) || !isTime(penaltyMs)) return 'wrong_time';
  return { isCold: cold === 1, freeSlots, totalSlots, trustedFreeSlots, prefillTps, decodeTps, waitMs, penaltyMs };
}

function rejectDigest(reason: DigestFault): DecodedDigest {
  return { kind: 'rejected', reason };
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 && value <= MAX_COUNT;
}

function isTime(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 && value <= MAX_TIME_MS;
}

function isRate(value: unknown): value is number {
  return typeof value === 'number' && value >= MIN_TPS && value <= MAX_TPS;
}

function isImageSize(value: unknown): value is string {
  return typeof value === 'string' && IMAGE_SIZE.test(value);
}

function roundedMs(ms: number): number {
  return Math.min(MAX_TIME_MS, Math.max(0, Math.round(ms)));
}

/** Three significant digits. */
function roundedTps(tps: number): number {
  return Number(Math.min(MAX_TPS, Math.max(MIN_TPS, tps)).toPrecision(3));
}

function sumOf<T>(items: readonly T[], value: (item: T) => number): number {
  let sum = 0;
  for (const item of items) sum += value(item);
  return sum;
}
