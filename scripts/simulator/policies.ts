/** Policies by which the simulator chooses a machine for a job: the real scheduler, and simpler ones to compare it with (baselines). */
import type { Hardware, ProviderId } from '@inference/protocol';
import {
  type Choice,
  costOf,
  DEFAULT_CONSTANTS,
  type OpenGroup,
  type PlacementRequest,
  type PoolMember,
  type ProviderPool,
  type SchedulerConstants,
  schedule,
  type ThroughputEstimate,
  ThroughputStats,
} from '@inference/scheduler';
import { MAX_WAIT_RATIO } from '../../apps/coordinator/src/inference/queue/request-queue.js';
import type { SimulatedMac } from './mac.js';

export interface Policy {
  readonly name: string;
  /** `perfect` is the scheduler with the machines' true rates. */
  readonly kind: 'scheduler' | 'perfect' | 'random' | 'least_loaded';
  readonly constants: SchedulerConstants;
  /** Requests whose expected wait exceeds this multiple of the queue's maximum are refused. */
  readonly maxWaitRatio: number;
}

export const SCHEDULER: Policy = { name: 'scheduler', kind: 'scheduler', constants: DEFAULT_CONSTANTS, maxWaitRatio: MAX_WAIT_RATIO };

export const BASELINES: readonly Policy[] = [
  { ...SCHEDULER, name: 'random', kind: 'random' },
  { ...SCHEDULER, name: 'least loaded', kind: 'least_loaded' },
  // No measuring, because the true rates are known.
  { ...SCHEDULER, name: 'perfect knowledge', kind: 'perfect', constants: { ...DEFAULT_CONSTANTS, measuringShare: 0, overdueShare: 0 } },
];

export interface Picked {
  readonly mac: SimulatedMac;
  /** Expected cost, in milliseconds. */
  readonly costMs: number;
  readonly why: Choice<SimulatedMac>['why'] | 'baseline';
}

/** Chooses a machine. Returns `busy` if no slot is free now, and `none` if waiting would not help. */
export function pick(
  kind: Policy['kind'],
  pool: ProviderPool<SimulatedMac>,
  request: PlacementRequest,
  now: number,
  random: () => number,
): Picked | 'busy' | 'none' {
  if (kind === 'scheduler' || kind === 'perfect') {
    const decision = schedule(pool, request, now, random);
    if (decision.kind !== 'placed') return decision.kind;
    const [{ member, estimate, why }] = decision.ordered;
    return { mac: member.subject, costMs: estimate.costMs, why };
  }
  const open = pool.open.filter(({ traits }) => !traits.isCold);
  const groups = open.length > 0 ? open : pool.slots === 0 ? pool.open : [];
  const fewest = Math.min(...groups.map(({ traits }) => traits.activeJobs));
  const chosen = kind === 'random' ? groups : groups.filter(({ traits }) => traits.activeJobs === fewest);
  const drawn = drawMac(chosen, request.exclude, random) ?? drawMac(groups, request.exclude, random);
  if (drawn === null) return pool.serving > request.exclude.size ? 'busy' : 'none';
  return { mac: drawn.member.subject, costMs: costOf(drawn.group.costModel, request.work), why: 'baseline' };
}

/** Random machine of the groups, or null if all are excluded. */
function drawMac(
  groups: readonly OpenGroup<SimulatedMac>[],
  exclude: ReadonlySet<ProviderId>,
  random: () => number,
): { member: PoolMember<SimulatedMac>; group: OpenGroup<SimulatedMac> } | null {
  const total = groups.reduce((sum, { members }) => sum + members.length, 0);
  const start = Math.floor(random() * total);
  for (let offset = 0; offset < total; offset++) {
    let left = (start + offset) % total;
    for (const group of groups) {
      const member = group.members[left];
      if (member !== undefined) {
        if (!exclude.has(member.facts.providerId)) return { member, group };
        break;
      }
      left -= group.members.length;
    }
  }
  return null;
}

/** Throughput estimates of the policy `perfect`: the true rates of each machine. */
export class OracleThroughput extends ThroughputStats {
  constructor(private readonly macs: ReadonlyMap<ProviderId, SimulatedMac>) {
    super();
  }

  override estimate(providerId: ProviderId, model: string, _hardware: Hardware): ThroughputEstimate {
    const installed = this.macs.get(providerId)?.installedModels.get(model);
    return { prefillTps: installed?.prefillTps ?? 1, decodeTps: installed?.decodeTps ?? 1, samples: 10 };
  }

  override record(): null {
    return null;
  }
}
