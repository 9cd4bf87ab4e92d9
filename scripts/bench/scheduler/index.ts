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

/** Resolves to whether the median picks, with and without conversations, take less than the target. */
export async function benchScheduler(): Promise<boolean> {
  // A fixed seed: the same providers and requests in every run.
  const random = seededRandom(1);
  const providers = Array.from({ length: PROVIDERS }, (_, index) => newProvider(index, random));
  const pools = Array.from({ length: MODELS }, () => new ProviderPool<BenchProvider>());
  const update = (one: BenchProvider): void => {
    for (const [model, pool] of pools.entries()) pool.put(one, one.facts, one.speeds[model] as ThroughputEstimate, 8192, NOW);
  };
  const filled = performance.now();
  for (const one of providers) update(one);
  console.log(`${PROVIDERS} providers put on ${MODELS} pools in ${Math.round(performance.now() - filled)} ms`);

  const running: BenchProvider[] = [];
  const affinity = new PrefixAffinity();
  const byId = new Map(providers.map((one) => [one.facts.providerId, one]));
  const jobsOf = (providerId: ProviderId): ProviderJobs => ({ placements: 0, slots: byId.get(providerId)?.facts.slots ?? 0, since: 0 });
  const talks = Array.from({ length: CONVERSATIONS }, (_, index) => conversation(index, random));
  for (const promptPrefixes of talks)
    affinity.record(
      promptPrefixes,
      0,
      (providers[Math.floor(random() * PROVIDERS)] as BenchProvider).facts.providerId,
      jobsOf(NOBODY),
      NOW,
    );
  const picks: number[] = [];
  const warmPicks: number[] = [];
  const changes: number[] = [];
  const scans: number[] = [];
  let [warmed, known] = [0, 0];
  for (let count = 0; count < PICKS; count++) {
    const talk = Math.floor(random() * CONVERSATIONS);
    const pool = pools[talk % MODELS] as ProviderPool<BenchProvider>;
    const request = someRequest(random);
    const promptPrefixes = talks[talk] as readonly PromptPrefix[];
    const isContinued = count % 2 === 0;
    const picked = timed(isContinued ? warmPicks : picks, () => {
      if (!isContinued) return schedule(pool, request, NOW, random);
      const prefixCandidates = affinity.candidates(promptPrefixes, NOW, jobsOf);
      known += prefixCandidates.length > 0 ? 1 : 0;
      return schedule(pool, { ...request, prefixCandidates }, NOW, random);
    });
    if (picked.kind === 'placed') {
      const { facts } = picked.ordered[0].member;
      if (picked.ordered[0].why === 'warm') warmed++;
      if (isContinued) affinity.record(promptPrefixes, promptPrefixes.at(-1)?.tokens ?? 0, facts.providerId, jobsOf(facts.providerId), NOW);
    }
    timed(changes, () => {
      if (picked.kind === 'placed') running.push(use(picked.ordered[0].member.subject, 1));
      const [ended] = running.length > PROVIDERS / 2 ? running.splice(Math.floor(random() * running.length), 1) : [];
      if (picked.kind === 'placed') update(picked.ordered[0].member.subject);
      if (ended !== undefined) update(use(ended, -1));
    });
    if (count % (PICKS / SCANS) === 0) timed(scans, () => scan(providers, count % MODELS, request));
  }
  const groups = [...(pools[0] as ProviderPool<BenchProvider>).open].length;
  const [pickUs, p99, warmUs, changeUs, scanUs] = [middle(picks), p(picks, 0.99), middle(warmPicks), middle(changes), middle(scans)];
  const met = pickUs < TARGET_US && warmUs < TARGET_US;
  console.log(`groups on a pool: ${groups}`);
  console.log(`full scan:  ${scanUs.toFixed(1)} us a pick at p50`);
  console.log(`by groups:  ${pickUs.toFixed(1)} us at p50, ${p99.toFixed(1)} us at p99; ${(scanUs / pickUs).toFixed(0)} times as fast`);
  console.log(
    `with warm prefixes: ${warmUs.toFixed(1)} us at p50, ${p(warmPicks, 0.99).toFixed(1)} us at p99; known in ${percent(known)}, ` +
      `chosen in ${percent(warmed)}`,
  );
  console.log(
    `a slot taken and one given back on ${MODELS} pools: ${changeUs.toFixed(1)} us at p50, ${p(changes, 0.99).toFixed(1)} us at p99`,
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
