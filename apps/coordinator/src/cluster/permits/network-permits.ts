/**
 * `NetworkPermits`: limits of the whole network. A key's home, by rendezvous hashing (Thaler and Ravishankar 1998), leases permits.
 *
 * Without its home, a coordinator admits an equal part of the limit.
 */
import { createHash } from 'node:crypto';
import { BoundedMap } from '@inference/scheduler/bounded-map';
import type { NetworkLimit, NetworkLimits, Permit } from '../../limits/network-limits.js';
import { LinkError } from '../link/link-error.js';
import { type LimitRule, PermitHome } from './permit-home.js';
import { decodeGrant, decodePermitRequest, encodePermits, type Grant, type PermitRequest } from './permit-messages.js';

export interface NetworkPermitsOptions {
  readonly self: string;
  /** Sends a request to another coordinator; rejects when there is no answer. */
  readonly request: (coordinator: string, payload: Uint8Array) => Promise<Uint8Array>;
  /** Whether this coordinator reaches the others at all. */
  readonly isConnected: () => boolean;
  /** Monotonic, in milliseconds. */
  readonly now?: () => number;
}

interface Waiter {
  readonly amount: number;
  resolve(permit: Permit): void;
}

interface Coordinator {
  readonly id: string;
  /** 32 bits of a hash of the id. */
  readonly hash: number;
}

/** Available permits of one key, and the state of its window. */
interface Lease {
  /** Hexadecimal. */
  readonly hash: string;
  readonly waiters: Waiter[];
  isAsking: boolean;
  /** Home of the key among `coordinators`. */
  home: string;
  coordinators: readonly Coordinator[];
  /** End of the window; a past time: no window. */
  until: number;
  /** Latest end of the window at its home, whose answer took some of the time. */
  resetAt: number;
  available: number;
  /** Permits of this coordinator in the window, used and available. */
  taken: number;
  /** Permits left at the home after its last grant. */
  remaining: number;
  /** Home of the last grant. */
  grantedBy: string | null;
  /** Home that did not answer: this coordinator admits its part of the limit. */
  unanswered: string | null;
}

/** Maximum keys per limit; the least recently used are dropped. */
const MAX_KEYS = 20_000;
/** Pause before an unreachable coordinator is asked again, in milliseconds. */
const UNREACHABLE_MS = 1000;
const HASH_DIGITS = 32;

export class NetworkPermits implements NetworkLimits {
  readonly #options: NetworkPermitsOptions;
  readonly #now: () => number;
  readonly #rules = new Map<string, LimitRule>();
  readonly #windows: PermitHome;
  readonly #unreachableUntil = new BoundedMap<string, number>(1024);
  #coordinators: readonly Coordinator[] = [];

  constructor(options: NetworkPermitsOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
    this.#windows = new PermitHome(this.#rules, this.#now);
    this.coordinatorsChanged([options.self]);
  }

  /** Sets the live coordinators, this one included. */
  coordinatorsChanged(ids: readonly string[]): void {
    this.#coordinators = ids.map((id) => ({ id, hash: createHash('sha256').update(id).digest().readInt32BE(0) }));
  }

  /** Answers a request of kind `permits`. Throws for an invalid request, and without room. */
  answer(asker: string, payload: Uint8Array): Uint8Array {
    const request = decodePermitRequest(payload);
    const grant = request === null ? null : this.#windows.take(asker, request, this.#coordinators.length);
    if (grant === null) throw new LinkError('failed', 'the permits cannot be granted');
    return encodePermits(grant);
  }

  define(name: string, rule: LimitRule): NetworkLimit {
    this.#rules.set(name, rule);
    const leases = new BoundedMap<string, Lease>(MAX_KEYS);
    return {
      take: (key, amount = 1) => {
        const lease = leases.get(key) ?? newLease(`${name}\0${key}`);
        leases.set(key, lease);
        if (!lease.isAsking) {
          const permit = this.#decide(name, rule, lease, amount);
          if (permit !== null) return permit;
        }
        return new Promise((resolve) => {
          lease.waiters.push({ amount, resolve });
          if (!lease.isAsking) void this.#ask(name, rule, lease);
        });
      },
    };
  }

  /** Null: the home must be asked. */
  #decide(name: string, rule: LimitRule, lease: Lease, amount: number): Permit | null {
    const now = this.#now();
    const isOpen = lease.until > now;
    if (isOpen && lease.available >= amount) return spend(lease, amount, now);
    if (isOpen && lease.unanswered === null && lease.remaining === 0) return refusal(lease, now);
    this.#findHome(lease);
    if (isOpen && lease.unanswered === lease.home) return refusal(lease, now);
    // A disconnected coordinator, even the home, knows only its own requests.
    const isAlone = lease.coordinators.length > 1 && !this.#options.isConnected();
    if (lease.home === this.#options.self && !isAlone) {
      const request = requestFor(name, rule, lease, [amount], now);
      const grant = this.#windows.take(lease.home, { ...request, want: amount }, lease.coordinators.length);
      if (grant === null) admitPart(rule, lease, now);
      else store(rule, lease, grant, { sentAt: now, receivedAt: now });
      return spend(lease, amount, now);
    }
    if (!isAlone && (this.#unreachableUntil.get(lease.home) ?? Number.NEGATIVE_INFINITY) <= now) return null;
    admitPart(rule, lease, now);
    return spend(lease, amount, now);
  }

  /** Decides all waiting requests. Never rejects. */
  async #ask(name: string, rule: LimitRule, lease: Lease): Promise<void> {
    lease.isAsking = true;
    for (let [first] = lease.waiters; first !== undefined; [first] = lease.waiters) {
      const permit = this.#decide(name, rule, lease, first.amount);
      if (permit !== null) {
        lease.waiters.shift();
        first.resolve(permit);
        continue;
      }
      const batch = lease.waiters.map(({ amount }) => amount);
      await this.#refill(name, rule, lease, batch);
      const now = this.#now();
      for (const { amount, resolve } of lease.waiters.splice(0, batch.length)) resolve(spend(lease, amount, now));
    }
    lease.isAsking = false;
  }

  async #refill(name: string, rule: LimitRule, lease: Lease, amounts: readonly number[]): Promise<void> {
    const sentAt = this.#now();
    const { home } = lease;
    const request = requestFor(name, rule, lease, amounts, sentAt);
    const answer = await this.#options.request(home, encodePermits(request)).catch(() => null);
    const grant = answer === null ? null : decodeGrant(answer);
    // The window began at the home after the request was sent, so it ends here first.
    if (grant !== null && grant.granted <= Math.max(request.need, request.want)) {
      store(rule, lease, grant, { sentAt, receivedAt: this.#now() });
      return;
    }
    this.#unreachableUntil.set(home, this.#now() + UNREACHABLE_MS);
    admitPart(rule, lease, this.#now());
  }

  #findHome(lease: Lease): void {
    if (lease.coordinators === this.#coordinators) return;
    lease.coordinators = this.#coordinators;
    const key = Number.parseInt(lease.hash.slice(0, 8), 16);
    let best = Number.NEGATIVE_INFINITY;
    for (const { id, hash } of this.#coordinators) {
      const score = mixed(key ^ hash);
      if (score <= best) continue;
      best = score;
      lease.home = id;
    }
  }
}

function newLease(text: string): Lease {
  return {
    hash: createHash('sha256').update(text).digest('hex').slice(0, HASH_DIGITS),
    waiters: [],
    isAsking: false,
    home: '',
    coordinators: [],
    until: Number.NEGATIVE_INFINITY,
    resetAt: Number.NEGATIVE_INFINITY,
    available: 0,
    taken: 0,
    remaining: 0,
    grantedBy: null,
    unanswered: null,
  };
}

/** The demand of a key within the window determines the size of its next lease. */
function requestFor(name: string, { max }: LimitRule, lease: Lease, amounts: readonly number[], now: number): PermitRequest {
  const isOpen = lease.until > now;
  const need = amounts.reduce((sum, amount) => sum + amount, 0);
  const isNewHome = isOpen && lease.grantedBy !== lease.home;
  const used = Math.max(lease.taken, lease.grantedBy === null ? 0 : max - lease.remaining);
  return {
    limit: name,
    key: lease.hash,
    min: Math.min(...amounts),
    need,
    want: need + (isOpen ? lease.taken : 0),
    earlier: isNewHome ? { used, reset_ms: Math.ceil(lease.until - now) } : null,
  };
}

/** Adds a grant to the lease. A hostile home can grant at most the whole limit. */
function store(
  { max, windowMs }: LimitRule,
  lease: Lease,
  grant: Grant,
  { sentAt, receivedAt }: { readonly sentAt: number; readonly receivedAt: number },
): void {
  startWindow(lease, sentAt, Math.min(windowMs, grant.reset_ms));
  lease.until = sentAt + Math.min(windowMs, grant.reset_ms);
  lease.resetAt = receivedAt + Math.min(windowMs, grant.reset_ms);
  const granted = Math.max(0, Math.min(grant.granted, max - lease.taken));
  lease.available += granted;
  lease.taken += granted;
  lease.remaining = Math.min(max, grant.remaining);
  lease.grantedBy = lease.home;
  lease.unanswered = null;
}

/** Admits without the home: this coordinator's part of the limit, less its permits of the window. */
function admitPart({ max, windowMs }: LimitRule, lease: Lease, now: number): void {
  startWindow(lease, now, windowMs);
  const part = Math.max(1, Math.floor(max / lease.coordinators.length));
  const granted = Math.max(0, part - lease.taken);
  lease.available += granted;
  lease.taken += granted;
  lease.unanswered = lease.home;
}

/** Starts a window unless one is open. */
function startWindow(lease: Lease, now: number, lengthMs: number): void {
  if (lease.until > now) return;
  lease.until = now + lengthMs;
  lease.resetAt = lease.until;
  lease.available = 0;
  lease.taken = 0;
  lease.remaining = 0;
  lease.grantedBy = null;
}

function spend(lease: Lease, amount: number, now: number): Permit {
  if (lease.available < amount) return refusal(lease, now);
  lease.available -= amount;
  const remaining = lease.available + (lease.unanswered === null ? lease.remaining : 0);
  return { isAdmitted: true, remaining, resetMs: Math.max(0, lease.resetAt - now) };
}

function refusal(lease: Lease, now: number): Permit {
  return { isAdmitted: false, remaining: 0, resetMs: Math.max(0, lease.resetAt - now) };
}

/** Finalizer of MurmurHash3: each bit of the input changes each bit of the result with probability 1/2. */
function mixed(value: number): number {
  let hash = value ^ (value >>> 16);
  hash = Math.imul(hash, 0x85ebca6b);
  hash ^= hash >>> 13;
  hash = Math.imul(hash, 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
