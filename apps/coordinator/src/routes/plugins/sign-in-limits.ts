/**
 * `SignInLimits` limits password attempts, and e-mails for resets and confirmations, per client and e-mail address and per network.
 *
 * An attacker must not be able to lock out the owner of an e-mail address. Attempts of unknown clients are therefore counted per e-mail
 * address, and delayed above a limit. Clients with an earlier sign-in are never delayed.
 */
import { type AttemptCounter, type AttemptCounters, countInAll, type RecentNames } from '../../limits/attempt-counters.js';
import { HOUR_MS } from '../../time-units.js';
import { localAttempts } from './attempt-limit.js';

interface SignInLimitOptions {
  /** Attempts per client and e-mail address in fifteen minutes. 0 disables all limits. */
  readonly maxPerQuarterHour: number;
  readonly now: () => number;
  /** Counters of all coordinators. By default, counts are local to the process. */
  readonly attempts?: AttemptCounters | undefined;
  /** Waits `ms` milliseconds. Rejects when the client disconnects. */
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>;
}

export interface SignInClient {
  readonly email: string;
  /** Network of the client's address, from `networkOf`. */
  readonly network: string;
  /** Id of a browser with an earlier sign-in for this e-mail address. Null for an unknown browser. */
  readonly device: string | null;
}

/** An admitted attempt. */
export interface SignInAttempt {
  /** If true, the e-mail address has too many attempts of unknown clients. Call {@link SignInLimits.delay} first. */
  readonly isDelayed: boolean;
  /** Undoes the count. Call after a success, and if the password was not checked or the result not stored. */
  refund(): Promise<void>;
}

export interface SignInBlock {
  readonly by: 'email' | 'network';
  /** Seconds. */
  readonly retryAfter: number;
}

const QUARTER_MS = 15 * 60_000;
/** Factor on the limit of one client. Applies to a network, and to all unknown clients of an e-mail address together. */
const SHARED_LIMIT_FACTOR = 10;
const DELAY_MS = 5000;
const MAX_DELAYED = 1000;
/** Maximum e-mails per hour. Links are valid for an hour, so a client at the limit has received a valid link. */
const MAX_MAILS_PER_CLIENT = 5;
const MAX_MAILS_PER_EMAIL = 20;
const KNOWN_MS = 30 * 24 * HOUR_MS;

export class SignInLimits {
  readonly #options: SignInLimitOptions;
  readonly #clients: AttemptCounter;
  readonly #networks: AttemptCounter;
  readonly #unknownClients: AttemptCounter;
  readonly #confirmations: AttemptCounter;
  readonly #mailsOfClients: AttemptCounter;
  readonly #mailsOfUnknownClients: AttemptCounter;
  /** Clients that signed in. */
  readonly #known: RecentNames;
  /** Delayed attempts of this process. */
  readonly #delayed = new Set<string>();

  constructor(options: SignInLimitOptions) {
    const { maxPerQuarterHour, now, attempts = localAttempts(now) } = options;
    this.#options = options;
    const limit = (name: string, maxAttempts: number, windowMs: number) => attempts.counter(name, { maxAttempts, windowMs });
    this.#clients = limit('sign-ins of a client', maxPerQuarterHour, QUARTER_MS);
    this.#networks = limit('sign-ins of a network', SHARED_LIMIT_FACTOR * maxPerQuarterHour, QUARTER_MS);
    this.#unknownClients = limit('sign-ins of strangers', SHARED_LIMIT_FACTOR * maxPerQuarterHour, QUARTER_MS);
    this.#confirmations = limit('password confirmations of a session', maxPerQuarterHour, QUARTER_MS);
    this.#mailsOfClients = limit('mails of a client', MAX_MAILS_PER_CLIENT, HOUR_MS);
    this.#mailsOfUnknownClients = limit('mails of strangers', MAX_MAILS_PER_EMAIL, HOUR_MS);
    this.#known = attempts.recentNames('known clients', { lifetimeMs: KNOWN_MS });
  }

  /** Counts an attempt. The caller must refuse a {@link SignInBlock}. Rejects while the shared counters are unavailable. */
  async begin(client: SignInClient): Promise<SignInAttempt | SignInBlock> {
    if (this.#options.maxPerQuarterHour === 0) return { isDelayed: false, refund: async () => {} };
    const ofClient = [this.#clients, nameOf(client)] as const;
    const counted = await countInAll(client.device === null ? [ofClient, [this.#networks, client.network]] : [ofClient]);
    if (!counted.isAdmitted) return { by: counted.refusedBy === this.#networks ? 'network' : 'email', retryAfter: counted.retryAfter };
    try {
      if (await this.#isKnown(client)) return { isDelayed: false, refund: counted.refund };
      const ofUnknownClients = await countInAll([[this.#unknownClients, client.email]]);
      if (!ofUnknownClients.isAdmitted) return { isDelayed: true, refund: counted.refund };
      return { isDelayed: false, refund: async () => void (await Promise.all([counted.refund(), ofUnknownClients.refund()])) };
    } catch (error) {
      // A failed counter is no attempt of the client.
      await counted.refund();
      throw error;
    }
  }

  /** Counts an attempt without an e-mail address, such as a second step, for its network only. */
  async beginSecondStep(network: string): Promise<SignInAttempt | SignInBlock> {
    if (this.#options.maxPerQuarterHour === 0) return { isDelayed: false, refund: async () => {} };
    const counted = await countInAll([[this.#networks, network]]);
    return counted.isAdmitted ? { isDelayed: false, refund: counted.refund } : { by: 'network', retryAfter: counted.retryAfter };
  }

  /** Counts each password that a signed-in user enters to confirm an action, right or wrong. Returns null, or the seconds to wait. */
  async countConfirmation(sessionId: string): Promise<number | null> {
    return this.#options.maxPerQuarterHour === 0 ? null : this.#confirmations.count(sessionId);
  }

  /** Waits before an attempt with `isDelayed`. Returns false if too many attempts wait. Rejects when the client disconnects. */
  async delay(client: SignInClient, signal: AbortSignal): Promise<boolean> {
    const name = nameOf(client);
    if (this.#delayed.has(name) || this.#delayed.size >= MAX_DELAYED) return false;
    this.#delayed.add(name);
    try {
      await this.#options.pause(DELAY_MS, signal);
      return true;
    } finally {
      this.#delayed.delete(name);
    }
  }

  /** Records a successful sign-in, after which the client is known for {@link KNOWN_MS}. */
  async recordSuccess(client: SignInClient): Promise<void> {
    await this.#known.add(nameOf(client));
  }

  /** Counts an e-mail. If the limit is reached, returns false, and the e-mail must not be sent. */
  async admitMail(client: SignInClient): Promise<boolean> {
    if (this.#options.maxPerQuarterHour === 0) return true;
    const ofClient = [this.#mailsOfClients, nameOf(client)] as const;
    const isKnown = await this.#isKnown(client);
    const counted = await countInAll(isKnown ? [ofClient] : [ofClient, [this.#mailsOfUnknownClients, client.email]]);
    return counted.isAdmitted;
  }

  async #isKnown(client: SignInClient): Promise<boolean> {
    return client.device !== null || (await this.#known.has(nameOf(client)));
  }
}

/** Normalized e-mail address of bounded length, for the counters. */
export function normalizeEmail(email: string): string {
  return email.trim().toLowerCase().slice(0, 320);
}

function nameOf({ email, network, device }: SignInClient): string {
  return JSON.stringify([email, device === null ? { network } : { device }]);
}
