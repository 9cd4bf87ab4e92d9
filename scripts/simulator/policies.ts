/** How a machine is chosen: by the real scheduler, or by what it is compared with, from the same board under the same gates. */
import type { Hardware, ProviderId } from '@inference/protocol';
import type { Board, Member, OpenGroup } from '../../apps/coordinator/src/fleet/scheduler/board.js';
import { CONSTANTS, type SchedulerConstants } from '../../apps/coordinator/src/fleet/scheduler/constants.js';
import { costOf, type Speed } from '../../apps/coordinator/src/fleet/scheduler/cost.js';
import { type Choice, type PlacementRequest, schedule } from '../../apps/coordinator/src/fleet/scheduler/schedule.js';
import { SpeedBook } from '../../apps/coordinator/src/fleet/scheduler/speed-book.js';
import { HOPELESS } from '../../apps/coordinator/src/inference/waiting-room.js';
import type { Mac } from './mac.js';

export interface Policy {
  readonly name: string;
  readonly kind: 'scheduler' | 'perfect' | 'random' | 'least_loaded';
  readonly constants: SchedulerConstants;
  /** A wait that would take more than this many times what there is, is refused. */
  readonly hopeless: number;
}

export const SCHEDULER: Policy = { name: 'scheduler', kind: 'scheduler', constants: CONSTANTS, hopeless: HOPELESS };

export const BASELINES: readonly Policy[] = [
  { ...SCHEDULER, name: 'random', kind: 'random' },
  { ...SCHEDULER, name: 'least loaded', kind: 'least_loaded' },
  // It has nothing to find out, and owes nobody a turn.
  { ...SCHEDULER, name: 'perfect knowledge', kind: 'perfect', constants: { ...CONSTANTS, measuringShare: 0, overdueShare: 0 } },
];

export interface Picked {
  readonly mac: Mac;
  /** Expected, in milliseconds. */
  readonly costMs: number;
  readonly why: Choice<Mac>['why'] | 'baseline';
}

/** The machine for a request, or why there is none now. `now` in milliseconds. */
export function pick(
  kind: Policy['kind'],
  board: Board<Mac>,
  request: PlacementRequest,
  now: number,
  random: () => number,
): Picked | 'busy' | 'none' {
  if (kind === 'scheduler' || kind === 'perfect') {
    const decision = schedule(board, request, now, random);
    if (decision.kind !== 'placed') return decision.kind;
    const [{ member, estimate, why }] = decision.ordered;
    return { mac: member.subject, costMs: estimate.costMs, why };
  }
  const open = board.open.filter(({ traits }) => !traits.cold);
  const groups = open.length > 0 ? open : board.slots === 0 ? board.open : [];
  const fewest = Math.min(...groups.map(({ traits }) => traits.activeJobs));
  const chosen = kind === 'random' ? groups : groups.filter(({ traits }) => traits.activeJobs === fewest);
  const drawn = draw(chosen, request.exclude, random) ?? draw(groups, request.exclude, random);
  if (drawn === null) return board.serving > request.exclude.size ? 'busy' : 'none';
  return { mac: drawn.member.subject, costMs: costOf(drawn.group.tariff, request.work), why: 'baseline' };
}

function draw(
  groups: readonly OpenGroup<Mac>[],
  exclude: ReadonlySet<ProviderId>,
  random: () => number,
): { member: Member<Mac>; group: OpenGroup<Mac> } | null {
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

/** Knows every machine's true rates, and has nothing to learn. */
export class PerfectBook extends SpeedBook {
  constructor(private readonly macs: ReadonlyMap<ProviderId, Mac>) {
    super();
  }

  override speed(providerId: ProviderId, model: string, _hardware: Hardware): Speed {
    const resident = this.macs.get(providerId)?.residents.get(model);
    return { prefillTps: resident?.prefillTps ?? 1, decodeTps: resident?.decodeTps ?? 1, samples: 10 };
  }

  override learn(): null {
    return null;
  }
}
