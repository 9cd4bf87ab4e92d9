/**
 * `NetworkPermits`: rate limits that hold for the whole cluster, such as requests per API key and minute.
 *
 * A limit counts per key, such as one API key. Rendezvous hashing (Thaler and Ravishankar 1998) assigns each key to one coordinator,
 * its home. The home grants permits, each for one request, in batches. A coordinator that cannot reach the home admits an equal
 * share of the limit.
 */
import { createHash } from 'node:crypto';
import { BoundedMap } from '@inference/scheduler/bounded-map';
import type { NetworkLimit, NetworkLimits, Permit } from '../../limits/network-limits.js';
import { LinkError } from '../link/link-error.js';
import { type LimitRule, PermitHome } from './permit-home.js';
import { decodeGrant, decodePermitRequest, encodePermits, type Grant, type PermitRequest } from './permit-messages.js';

export interface NetworkPermitsOptions {
  readonly self: string;
  /** Sends a request to a peer. Rejects if there is no answer. */
  readonly request: (coordinator: string, payload: Uint8Array) => Promise<Uint8Array>;
  readonly isConnected: () => boolean;
  /** Monotonic, in milliseconds. */
  readonly now?: () => number;
}

/** A caller that waits for the home's answer. */
interface Waiter {
  readonly amount: number;
  resolve(permit: Permit): void;
}

interface Coordinator {
  readonly id: string;
  /** 32 bits of a hash of the id. */
  readonly hash: number;
}

/** The permits of one key that this coordinator may use. Times are monotonic, in milliseconds. */
interface HeldPermits {
  /** Hash of the limit's name and the key, in hexadecimal. */
  readonly hash: string;
  readonly waiters: Waiter[];
  isAsking: boolean;
  home: string;
  /** Live coordinators when `home` was computed. */
  coordinators: readonly Coordinator[];
  /** End of the current window. A past time: no window is open. */
  windowEndsAt: number;
  /** Latest possible end of the window at the home: `windowEndsAt`, plus the round trip of the request. */
  resetAt: number;
  /** Unused permits at this coordinator. */
  available: number;
  /** Permits granted to this coordinator in the window, used and unused. */
  grantedTotal: number;
  /** Permits that the home had left after its last grant. */
  remaining: number;
  /** Home of the last grant in the window; null: no grant yet. */
  grantedBy: string | null;
  /** Home that did not answer, so that this coordinator admits an equal share of the limit. Null: the home answers. */
  silentHome: string | null;
}

/** Maximum keys per limit. The permits of the least recently used key are dropped. */
const MAX_KEYS_PER_LIMIT = 20_000;
/** Time until a home that did not answer is asked again. */
const UNREACHABLE_MS = 1000;
const HASH_DIGITS = 32;

export class NetworkPermits implements NetworkLimits {
  readonly #options: NetworkPermitsOptions;
  readonly #now: () => number;
  readonly #rules = new Map<string, LimitRule>();
  readonly #permitHome: PermitHome;
  readonly #unreachableUntil = new BoundedMap<string, number>(1024);
  #coordinators: readonly Coordinator[] = [];

  constructor(options: NetworkPermitsOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
    this.#permitHome = new PermitHome(this.#rules, this.#now);
    this.coordinatorsChanged([options.self]);
  }

  /** Sets the live coordinators, including this coordinator. */
  coordinatorsChanged(ids: readonly string[]): void {
    this.#coordinators = ids.map((id) => ({ id, hash: createHash('sha256').update(id).digest().readInt32BE(0) }));
  }

  /** Answers a peer's request of kind `permits`. Throws LinkError for an invalid request, and if too many windows are open. */
  answer(asker: string, payload: Uint8Array): Uint8Array {
    const request = decodePermitRequest(payload);
    const grant = request === null ? null : this.#permitHome.take(asker, request, this.#coordinators.length);
    if (grant === null) throw new LinkError('failed', 'the permits cannot be granted');
    return encodePermits(grant);
  }

  define(name: string, rule: LimitRule): NetworkLimit {
    this.#rules.set(name, rule);
    const heldByKey = new BoundedMap<string, HeldPermits>(MAX_KEYS_PER_LIMIT);
    return {
      take: (key, amount = 1) => {
        const held = heldByKey.get(key) ?? noPermits(`${name}\0${key}`);
        heldByKey.set(key, held);
        if (!held.isAsking) {
          const permit = this.#decide(name, rule, held, amount);
          if (permit !== null) return permit;
        }
        return new Promise((resolve) => {
          held.waiters.push({ amount, resolve });
          if (!held.isAsking) void this.#ask(name, rule, held);
        });
      },
    };
  }

  /** Admits or refuses a caller without a request to a peer. Null: the home must be asked first. */
  #decide(name: string, rule: LimitRule, held: HeldPermits, amount: number): Permit | null {
    const now = this.#now();
    const isOpen = held.windowEndsAt > now;
    if (isOpen && held.available >= amount) return takePermits(held, amount, now);
    if (isOpen && held.silentHome === null && held.remaining === 0) return refusal(held, now);
    this.#findHome(held);
    // The share for a silent home is admitted once per window.
    if (isOpen && held.silentHome === held.home) return refusal(held, now);
    // Without NATS, other coordinators cannot ask this one, even if it is the home. So it admits only its share, like the others.
    const isIsolated = held.coordinators.length > 1 && !this.#options.isConnected();
    if (held.home === this.#options.self && !isIsolated) {
      const request = requestFor(name, rule, held, [amount], now);
      // Asks for no larger batch, because the home is this coordinator.
      const grant = this.#permitHome.take(held.home, { ...request, want: amount }, held.coordinators.length);
      if (grant === null) admitShare(rule, held, now);
      else applyGrant(rule, held, grant, { sentAt: now, receivedAt: now });
      return takePermits(held, amount, now);
    }
    if (!isIsolated && (this.#unreachableUntil.get(held.home) ?? Number.NEGATIVE_INFINITY) <= now) return null;
    admitShare(rule, held, now);
    return takePermits(held, amount, now);
  }

  /** Asks the home until all waiting callers have an answer. Never rejects. */
  async #ask(name: string, rule: LimitRule, held: HeldPermits): Promise<void> {
    held.isAsking = true;
    for (let [first] = held.waiters; first !== undefined; [first] = held.waiters) {
      const permit = this.#decide(name, rule, held, first.amount);
      if (permit !== null) {
        held.waiters.shift();
        first.resolve(permit);
        continue;
      }
      const batch = held.waiters.map(({ amount }) => amount);
      await this.#refill(name, rule, held, batch);
      const now = this.#now();
      for (const { amount, resolve } of held.waiters.splice(0, batch.length)) resolve(takePermits(held, amount, now));
    }
    held.isAsking = false;
  }

  /** Requests permits from the home for the waiting callers. Without an answer, admits this coordinator's share. */
  async #refill(name: string, rule: LimitRule, held: HeldPermits, amounts: readonly number[]): Promise<void> {
    const sentAt = this.#now();
    const { home } = held;
    const request = requestFor(name, rule, held, amounts, sentAt);
    const answer = await this.#options.request(home, encodePermits(request)).catch(() => null);
    const grant = answer === null ? null : decodeGrant(answer);
    // The window is measured from the sending of the request, so that it never ends later than the window at the home.
    if (grant !== null && grant.granted <= Math.max(request.need, request.want)) {
      applyGrant(rule, held, grant, { sentAt, receivedAt: this.#now() });
      return;
    }
    this.#unreachableUntil.set(home, this.#now() + UNREACHABLE_MS);
    admitShare(rule, held, this.#now());
  }

  /** Computes the home again if the coordinators have changed. */
  #findHome(held: HeldPermits): void {
    if (held.coordinators === this.#coordinators) return;
    held.coordinators = this.#coordinators;
    const key = Number.parseInt(held.hash.slice(0, 8), 16);
    let best = Number.NEGATIVE_INFINITY;
    for (const { id, hash } of this.#coordinators) {
      const score = mixBits(key ^ hash);
      if (score <= best) continue;
      best = score;
      held.home = id;
    }
  }
}

function noPermits(text: string): HeldPermits {
  return {
    hash: createHash('sha256').update(text).digest('hex').slice(0, HASH_DIGITS),
    waiters: [],
    isAsking: false,
    home: '',
    coordinators: [],
    windowEndsAt: Number.NEGATIVE_INFINITY,
    resetAt: Number.NEGATIVE_INFINITY,
    available: 0,
    grantedTotal: 0,
    remaining: 0,
    grantedBy: null,
    silentHome: null,
  };
}

/** Request to the home. `want` adds the permits granted so far in the window, so that a busy coordinator gets larger batches. */
function requestFor(name: string, { max }: LimitRule, held: HeldPermits, amounts: readonly number[], now: number): PermitRequest {
  const isOpen = held.windowEndsAt > now;
  const need = amounts.reduce((sum, amount) => sum + amount, 0);
  const isNewHome = isOpen && held.grantedBy !== held.home;
  const used = Math.max(held.grantedTotal, held.grantedBy === null ? 0 : max - held.remaining);
  return {
    limit: name,
    key: held.hash,
    min: Math.min(...amounts),
    need,
    want: need + (isOpen ? held.grantedTotal : 0),
    earlier: isNewHome ? { used, reset_ms: Math.ceil(held.windowEndsAt - now) } : null,
  };
}

/** Adds a grant. The rule's own values cap the grant, because the home may be hostile. */
function applyGrant(
  { max, windowMs }: LimitRule,
  held: HeldPermits,
  grant: Grant,
  { sentAt, receivedAt }: { readonly sentAt: number; readonly receivedAt: number },
): void {
  startWindow(held, sentAt, Math.min(windowMs, grant.reset_ms));
  held.windowEndsAt = sentAt + Math.min(windowMs, grant.reset_ms);
  held.resetAt = receivedAt + Math.min(windowMs, grant.reset_ms);
  const granted = Math.max(0, Math.min(grant.granted, max - held.grantedTotal));
  held.available += granted;
  held.grantedTotal += granted;
  held.remaining = Math.min(max, grant.remaining);
  held.grantedBy = held.home;
  held.silentHome = null;
}

/** Adds permits without the home: an equal share of the limit, less the permits already taken in the window. */
function admitShare({ max, windowMs }: LimitRule, held: HeldPermits, now: number): void {
  startWindow(held, now, windowMs);
  const share = Math.max(1, Math.floor(max / held.coordinators.length));
  const granted = Math.max(0, share - held.grantedTotal);
  held.available += granted;
  held.grantedTotal += granted;
  held.silentHome = held.home;
}

/** Starts a new window unless a window is open. */
function startWindow(held: HeldPermits, now: number, lengthMs: number): void {
  if (held.windowEndsAt > now) return;
  held.windowEndsAt = now + lengthMs;
  held.resetAt = held.windowEndsAt;
  held.available = 0;
  held.grantedTotal = 0;
  held.remaining = 0;
  held.grantedBy = null;
}

function takePermits(held: HeldPermits, amount: number, now: number): Permit {
  if (held.available < amount) return refusal(held, now);
  held.available -= amount;
  const remaining = held.available + (held.silentHome === null ? held.remaining : 0);
  return { isAdmitted: true, remaining, resetMs: Math.max(0, held.resetAt - now) };
}

function refusal(held: HeldPermits, now: number): Permit {
  return { isAdmitted: false, remaining: 0, resetMs: Math.max(0, held.resetAt - now) };
}

/** Finalizer of MurmurHash3: each bit of the input changes each bit of the result with probability 1/2. */
function mixBits(value: number): number {
  let hash = value ^ (value >>> 16);
  hash = Math.imul(hash, 0x85ebca6b);
  hash ^= hash >>> 13;
  hash = Math.imul(hash, 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
