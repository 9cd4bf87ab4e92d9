/**
 * `FairBudget` shares memory for request bodies and connections fairly between holders (accounts or network addresses).
 *
 * A `Claim` reserves memory for one body or connection. A claim that does not fit may evict claims of others.
 */

interface FairBudgetOptions {
  readonly maxBytes: number;
  /** Maximum bytes of a holder, as a multiple of the free bytes. With 1, a lone holder gets half of the budget. With 9, nine tenths. */
  readonly freeMultiple: number;
  /** Fixed bytes per claim, for a connection and its objects. */
  readonly bytesPerClaim?: number;
  /** Whether a claim may evict any other claim of its holder. For addresses, which unrelated clients may share. Default false. */
  readonly evictsOwn?: boolean;
}

interface Claimant {
  /** Account, or network address. */
  readonly holder: string;
  /** Subdivision of the holder, such as an API key of an account. */
  readonly member?: string;
}

/** Claims of a holder, or of one of its members. */
class Group {
  bytes = 0;
  /** Claims that may be evicted, oldest first. */
  readonly unfinished = new Set<Claim>();
}

class Holder extends Group {
  readonly members = new Map<string, Group>();
  claimCount = 0;
}

/** Bytes reserved for one request body or connection. */
export class Claim {
  bytes = 0;
  isOpen = true;
  readonly #budget: FairBudget;
  readonly onEvicted: () => void;
  readonly claimant: Required<Claimant>;

  constructor(budget: FairBudget, claimant: Required<Claimant>, onEvicted: () => void) {
    this.#budget = budget;
    this.claimant = claimant;
    this.onEvicted = onEvicted;
  }

  /** Reserves further bytes. False if the claim is closed, or if the bytes do not fit even after evictions. */
  grow(bytes: number): boolean {
    return this.#budget.grow(this, bytes);
  }

  /** Returns bytes to the budget. */
  shrink(bytes: number): void {
    this.#budget.shrink(this, bytes);
  }

  /** Marks the claim as complete, so that it cannot be evicted any more. */
  finish(): void {
    this.#budget.finish(this);
  }

  /** Returns all bytes to the budget. Idempotent. */
  release(): void {
    this.#budget.release(this);
  }
}

/**
 * Dynamic thresholds (Choudhury and Hahne 1998): a holder may use up to a multiple of the free bytes.
 *
 * A claim that does not fit evicts the oldest unfinished claim of the first of these groups that exists:
 * 1. the largest other holder, if larger than the claimant's holder would become;
 * 2. with `evictsOwn`, the claimant's own holder;
 * 3. without `evictsOwn`, the largest other member of that holder, if larger than the claimant's member would become.
 */
export class FairBudget {
  readonly #options: Required<FairBudgetOptions>;
  readonly #holders = new Map<string, Holder>();
  #bytes = 0;

  constructor(options: FairBudgetOptions) {
    this.#options = { bytesPerClaim: 0, evictsOwn: false, ...options };
  }

  get maxBytes(): number {
    return this.#options.maxBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Opens a claim. Null if not even the fixed bytes fit. `onEvicted` is called after the claim was evicted. */
  open({ holder, member = '' }: Claimant, onEvicted: () => void): Claim | null {
    const claim = new Claim(this, { holder, member }, onEvicted);
    const group = this.#holders.get(holder) ?? new Holder();
    this.#holders.set(holder, group);
    group.claimCount++;
    const memberGroup = group.members.get(member) ?? new Group();
    group.members.set(member, memberGroup);
    group.unfinished.add(claim);
    memberGroup.unfinished.add(claim);
    if (claim.grow(this.#options.bytesPerClaim)) return claim;
    claim.release();
    return null;
  }

  grow(claim: Claim, bytes: number): boolean {
    if (!claim.isOpen) return false;
    const { holder, member } = this.#groupsOf(claim);
    while (!this.#fits(holder.bytes + bytes, bytes)) {
      const victim = this.#victimFor(claim, holder, member, bytes);
      if (victim === null) return false;
      victim.release();
      victim.onEvicted();
    }
    this.#add(claim, bytes);
    return true;
  }

  shrink(claim: Claim, bytes: number): void {
    if (claim.isOpen) this.#add(claim, -Math.min(bytes, claim.bytes));
  }

  finish(claim: Claim): void {
    if (!claim.isOpen) return;
    const { holder, member } = this.#groupsOf(claim);
    holder.unfinished.delete(claim);
    member.unfinished.delete(claim);
  }

  release(claim: Claim): void {
    if (!claim.isOpen) return;
    this.finish(claim);
    this.#add(claim, -claim.bytes);
    claim.isOpen = false;
    const { holder, member } = this.#groupsOf(claim);
    holder.claimCount--;
    if (holder.claimCount === 0) this.#holders.delete(claim.claimant.holder);
    else if (member.bytes === 0 && member.unfinished.size === 0) holder.members.delete(claim.claimant.member);
  }

  #fits(holderBytes: number, bytes: number): boolean {
    return holderBytes <= this.#options.freeMultiple * (this.#options.maxBytes - this.#bytes - bytes);
  }

  #add(claim: Claim, bytes: number): void {
    const { holder, member } = this.#groupsOf(claim);
    claim.bytes += bytes;
    member.bytes += bytes;
    holder.bytes += bytes;
    this.#bytes += bytes;
  }

  #victimFor(claim: Claim, holder: Holder, member: Group, bytes: number): Claim | null {
    const largest = largestOf(this.#holders.values(), (group) => group !== holder && group.bytes > holder.bytes + bytes);
    if (largest !== null) return oldestOf(largest, claim);
    if (this.#options.evictsOwn) return oldestOf(holder, claim);
    const sibling = largestOf(holder.members.values(), (group) => group !== member && group.bytes > member.bytes + bytes);
    return sibling === null ? null : oldestOf(sibling, claim);
  }

  #groupsOf({ claimant }: Claim): { readonly holder: Holder; readonly member: Group } {
    const holder = this.#holders.get(claimant.holder);
    // A member without bytes and unfinished claims was removed from the map, although finished, empty claims of it may be open.
    const member = holder?.members.get(claimant.member) ?? new Group();
    if (holder === undefined) throw new Error('the claim is not open');
    holder.members.set(claimant.member, member);
    return { holder, member };
  }
}

function largestOf<T extends Group>(groups: Iterable<T>, isCandidate: (group: T) => boolean): T | null {
  let largest: T | null = null;
  for (const group of groups) {
    if (group.unfinished.size > 0 && isCandidate(group) && (largest === null || group.bytes > largest.bytes)) largest = group;
  }
  return largest;
}

function oldestOf({ unfinished }: Group, except: Claim): Claim | null {
  for (const claim of unfinished) if (claim !== except) return claim;
  return null;
}
