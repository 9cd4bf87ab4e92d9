/**
 * Scheduler bench: time to choose a provider (a pick) among 10,000 providers of 50 models, by their groups and with a full scan.
 *
 * Every second pick continues a conversation, whose beginning some provider may have cached. Each pick takes one slot and frees another.
 */

import type { ProviderId } from '@inference/protocol';
import {
  costModelOf,
  costOf,
  DEFAULT_HOST_STATE,
  ineligibleReason,
  type PlacementRequest,
  PrefixAffinity,
  type PromptPrefix,
  type ProviderFacts,
  type ProviderJobs,
  ProviderPool,
  schedule,
  type ThroughputEstimate,
  traitsOf,
} from '@inference/scheduler';
import { seededRandom } from '../../../test/support/seeded-random.js';
import { sized } from '../size.js';
import { percentile } from '../statistics.js';

const PROVIDERS = sized(10_000, 200);
const MODELS = 50;
const PICKS = sized(20_000, 400);
const SCANS = sized(100, 4);
const NOW = 1_000_000;
const CONVERSATIONS = sized(20_000, 400);
const MAX_BLOCKS = 40;
const NOBODY = '' as ProviderId;
/** Maximum median time of a pick, in microseconds. */
const TARGET_US = 100;

interface BenchProvider {
  facts: ProviderFacts;
  readonly speeds: readonly ThroughputEstimate[];
}

/** Durations in microseconds, and counts. */
interface Measurements {
  /** Picks for requests without a conversation. */
  readonly picks: number[];
  /** Picks for requests that continue a conversation. */
  readonly continuedPicks: number[];
  readonly updates: number[];
  readonly scans: number[];
  /** Continued picks for which a provider with a cached prefix was known. */
  knownCount: number;
  /** Continued picks that chose such a provider. */
  warmCount: number;
}

/** Resolves to whether the median picks, with and without conversations, take less than the target. */
export async function benchScheduler(): Promise<boolean> {
  // A fixed seed: the same providers and requests in every run.
  const network = new BenchNetwork(seededRandom(1));
  const measured: Measurements = { picks: [], continuedPicks: [], updates: [], scans: [], knownCount: 0, warmCount: 0 };
  for (let count = 0; count < PICKS; count++) network.pick(count, measured);
  console.log(`groups on a pool: ${network.groupCount}`);
  return report(measured);
}

/** Providers, the pool of each model, and conversations whose beginnings some providers have cached. */
class BenchNetwork {
  readonly #random: () => number;
  readonly #providers: readonly BenchProvider[];
  readonly #providerById: ReadonlyMap<ProviderId, BenchProvider>;
  readonly #pools = Array.from({ length: MODELS }, () => new ProviderPool<BenchProvider>());
  readonly #affinity = new PrefixAffinity();
  readonly #conversations: readonly (readonly PromptPrefix[])[];
  readonly #running: BenchProvider[] = [];

  constructor(random: () => number) {
    this.#random = random;
    this.#providers = Array.from({ length: PROVIDERS }, (_, index) => newProvider(index, random));
    this.#providerById = new Map(this.#providers.map((one) => [one.facts.providerId, one]));
    const startMs = performance.now();
    for (const one of this.#providers) this.#update(one);
    console.log(`${PROVIDERS} providers put on ${MODELS} pools in ${Math.round(performance.now() - startMs)} ms`);
    this.#conversations = Array.from({ length: CONVERSATIONS }, (_, index) => conversation(index, random));
    for (const promptPrefixes of this.#conversations) {
      const { facts } = this.#providers[Math.floor(random() * PROVIDERS)] as BenchProvider;
      this.#affinity.record(promptPrefixes, 0, facts.providerId, this.#jobsOf(NOBODY), NOW);
    }
  }

  get groupCount(): number {
    return [...(this.#pools[0] as ProviderPool<BenchProvider>).open].length;
  }

  /** Picks a provider for a random request and takes its slot. Every second request continues a conversation. */
  pick(count: number, measured: Measurements): void {
    const number = Math.floor(this.#random() * CONVERSATIONS);
    const pool = this.#pools[number % MODELS] as ProviderPool<BenchProvider>;
    const request = someRequest(this.#random);
    const promptPrefixes = count % 2 === 0 ? (this.#conversations[number] as readonly PromptPrefix[]) : null;
    const decision = timed(promptPrefixes === null ? measured.picks : measured.continuedPicks, () => {
      if (promptPrefixes === null) return schedule(pool, request, NOW, this.#random);
      const prefixCandidates = this.#affinity.candidates(promptPrefixes, NOW, (id) => this.#jobsOf(id));
      measured.knownCount += prefixCandidates.length > 0 ? 1 : 0;
      return schedule(pool, { ...request, prefixCandidates }, NOW, this.#random);
    });
    const choice = decision.kind === 'placed' ? decision.ordered[0] : null;
    if (choice?.why === 'warm') measured.warmCount++;
    if (choice !== null && promptPrefixes !== null) {
      const { providerId } = choice.member.facts;
      this.#affinity.record(promptPrefixes, promptPrefixes.at(-1)?.tokens ?? 0, providerId, this.#jobsOf(providerId), NOW);
    }
    timed(measured.updates, () => this.#takeSlot(choice?.member.subject ?? null));
    if (count % (PICKS / SCANS) === 0) timed(measured.scans, () => scan(this.#providers, count % MODELS, request));
  }

  /** Takes a slot of the picked provider, if any, and frees one of a random running job. */
  #takeSlot(picked: BenchProvider | null): void {
    if (picked !== null) this.#running.push(use(picked, 1));
    const [ended] = this.#running.length > PROVIDERS / 2 ? this.#running.splice(Math.floor(this.#random() * this.#running.length), 1) : [];
    if (picked !== null) this.#update(picked);
    if (ended !== undefined) this.#update(use(ended, -1));
  }

  #update(one: BenchProvider): void {
    for (const [model, pool] of this.#pools.entries()) pool.put(one, one.facts, one.speeds[model] as ThroughputEstimate, 8192, NOW);
  }

  #jobsOf(providerId: ProviderId): ProviderJobs {
    return { placements: 0, slots: this.#providerById.get(providerId)?.facts.slots ?? 0, since: 0 };
  }
}

function report({ picks, continuedPicks, updates, scans, knownCount, warmCount }: Measurements): boolean {
  const [pickUs, continuedUs, updateUs, scanUs] = [middle(picks), middle(continuedPicks), middle(updates), middle(scans)];
  const met = pickUs < TARGET_US && continuedUs < TARGET_US;
  console.log(`full scan:  ${scanUs.toFixed(1)} us a pick at p50`);
  console.log(
    `by groups:  ${pickUs.toFixed(1)} us at p50, ${p(picks, 0.99).toFixed(1)} us at p99; ${(scanUs / pickUs).toFixed(0)} times as fast`,
  );
  console.log(
    `with warm prefixes: ${continuedUs.toFixed(1)} us at p50, ${p(continuedPicks, 0.99).toFixed(1)} us at p99; known in ` +
      `${percent(knownCount)}, chosen in ${percent(warmCount)}`,
  );
  console.log(
    `a slot taken and one given back on ${MODELS} pools: ${updateUs.toFixed(1)} us at p50, ${p(updates, 0.99).toFixed(1)} us at p99`,
  );
  console.log(`target: under ${TARGET_US} us a pick at p50, both ways ... ${met ? 'met' : 'MISSED'}`);
  return met;
}

/** Reference without groups: examines every provider. */
function scan(providers: readonly BenchProvider[], model: number, request: PlacementRequest): BenchProvider | null {
  let best: BenchProvider | null = null;
  let bestMs = Number.POSITIVE_INFINITY;
  for (const one of providers) {
    if (ineligibleReason(one.facts, request, NOW) !== null) continue;
    const costMs = costOf(costModelOf(traitsOf(one.facts, one.speeds[model] as ThroughputEstimate)), request.work);
    if (costMs >= bestMs) continue;
    bestMs = costMs;
    best = one;
  }
  return best;
}

/** Random provider: nine in ten can serve, and a tenth of the throughput estimates are not measured. */
function newProvider(index: number, random: () => number): BenchProvider {
  const bandwidth = [68, 100, 120, 153, 200, 273, 400, 410, 546, 819][index % 10] as number;
  const troubled = random() < 0.1;
  const speeds = Array.from({ length: MODELS }, (_, model) => {
    const decodeTps = (bandwidth / (2 + (model % 10) * 4)) * (0.8 + 0.4 * random());
    return { decodeTps, prefillTps: decodeTps * (8 + 8 * random()), samples: random() < 0.1 ? 0 : 10 };
  });
  const facts: ProviderFacts = {
    providerId: `provider-${index}` as ProviderFacts['providerId'],
    serialNumber: `SERIAL${index}`,
    isQuarantined: troubled && random() < 0.2,
    isDraining: troubled && random() < 0.2,
    keyNotAfter: NOW + 1,
    trustLevel: troubled && random() < 0.3 ? null : random() < 0.5 ? 'hardware' : 'self_signed',
    trustValidUntil: Number.POSITIVE_INFINITY,
    backoffUntil: troubled ? NOW + 1 : 0,
    slots: 4,
    usedSlots: Math.floor(random() * 5),
    recentFailures: random() < 0.05 ? 1 + Math.floor(random() * 3) : 0,
    host: random() < 0.05 ? { ...DEFAULT_HOST_STATE, thermal: 'serious' } : DEFAULT_HOST_STATE,
  };
  return { facts, speeds };
}

function someRequest(random: () => number): PlacementRequest {
  return {
    providerSerial: null,
    exclude: new Set(),
    trustFloor: random() < 0.2 ? 'hardware' : null,
    work: { promptTokens: 1 + Math.floor(8000 * random() ** 3), completionTokens: 1 + Math.floor(400 * random()) },
  };
}

/** Prompt prefixes of a conversation, as long as in long chats and coding agents. */
function conversation(index: number, random: () => number): PromptPrefix[] {
  const blocks = 1 + Math.floor(MAX_BLOCKS * random());
  return Array.from({ length: blocks }, (_, block) => ({ hash: index * MAX_BLOCKS * 2 + block, tokens: 256 * (block + 1) }));
}

/** Share of the continued picks. */
function percent(picks: number): string {
  return `${Math.round((100 * picks) / (PICKS / 2))} %`;
}

function use(one: BenchProvider, change: 1 | -1): BenchProvider {
  one.facts = { ...one.facts, usedSlots: one.facts.usedSlots + change };
  return one;
}

function timed<T>(into: number[], work: () => T): T {
  const start = performance.now();
  const result = work();
  into.push((performance.now() - start) * 1000);
  return result;
}

function middle(values: readonly number[]): number {
  return p(values, 0.5);
}

function p(values: readonly number[], share: number): number {
  return percentile(
    [...values].sort((a, b) => a - b),
    share,
  );
}
