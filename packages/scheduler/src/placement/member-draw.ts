/** `MemberDraw` draws providers out of groups at random for one decision, each at most once. */
import type { ProviderId } from '@inference/protocol';
import { unavailableReason } from '../eligibility.js';
import type { OpenGroup, PoolMember } from '../pool/provider-groups.js';

/** Random attempts before the draw scans members in order. */
const MAX_RANDOM_DRAWS = 8;

export interface Drawn<S> {
  readonly member: PoolMember<S>;
  readonly group: OpenGroup<S>;
}

export class MemberDraw<S> {
  /** Members that turned out to be unavailable now, for example because trust expired since they were grouped. */
  readonly expired: PoolMember<S>[] = [];
  readonly #taken = new Set<PoolMember<S>>();

  constructor(
    private readonly exclude: ReadonlySet<ProviderId>,
    private readonly now: number,
    private readonly random: () => number,
  ) {}

  /** A random available member of the groups; null: none is left. */
  from(groups: readonly OpenGroup<S>[]): Drawn<S> | null {
    let total = 0;
    for (const { members } of groups) total += members.length;
    if (total === 0) return null;
    for (let draws = 0; draws < MAX_RANDOM_DRAWS; draws++) {
      const drawn = this.#memberAt(groups, Math.floor(this.random() * total));
      if (drawn !== null && this.take(drawn.member)) return drawn;
    }
    const start = Math.floor(this.random() * total);
    for (let offset = 0; offset < total; offset++) {
      const drawn = this.#memberAt(groups, (start + offset) % total);
      if (drawn !== null && this.take(drawn.member)) return drawn;
    }
    return null;
  }

  /** Marks a member as drawn. Returns false if it was drawn before, is excluded or has expired. */
  take(member: PoolMember<S>): boolean {
    if (this.#taken.has(member) || this.exclude.has(member.facts.providerId)) return false;
    this.#taken.add(member);
    if (unavailableReason(member.facts, this.now) === null) return true;
    this.expired.push(member);
    return false;
  }

  #memberAt(groups: readonly OpenGroup<S>[], index: number): Drawn<S> | null {
    let left = index;
    for (const group of groups) {
      const member = group.members[left];
      if (member !== undefined) return { member, group };
      left -= group.members.length;
    }
    return null;
  }
}
