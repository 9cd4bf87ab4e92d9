/**
 * `SignInLimits` counts sign-in attempts, password confirmations, and e-mails with links, and tells when a limit is exceeded.
 *
 * An attacker must not be able to lock out the user of an e-mail address. Attempts of unknown clients together are therefore counted per
 * e-mail address, and above a limit only delayed. Clients with an earlier sign-in are never delayed.
 */
import { type AttemptCounter, type AttemptCounters, countInAll, type RecentNames } from '../../limits/attempt-counters.js';
import { HOUR_MS } from '../../time-units.js';
import { localAttempts } from './attempt-limit.js';

interface SignInLimitOptions {
  /** Attempts per client and e-mail address in fifteen minutes. 0 disables all limits. */
  readonly maxPerQuarterHour: number;
  readonly now: () => number;
  /** Counters that all coordinators share. Default: counters of this process. */
  readonly attempts?: AttemptCounters | undefined;
  /** Waits `ms` milliseconds. Rejects when the client disconnects. */
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>;
}

export interface SignInClient {
  readonly email: string;
  /** From `networkOf`. */
  readonly network: string;
  /** Id of the browser, if this e-mail address has signed in there before; see `KnownBrowsers`. */
  readonly knownBrowserId: string | null;
}

export interface SignInAttempt {
  /** True if unknown clients have made too many attempts for the e-mail address. Call {@link SignInLimits.delay} first. */
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
/** Limit of a network, and of all unknown clients of an e-mail address together, as a multiple of the limit of one client. */
const SHARED_LIMIT_FACTOR = 10;
const DELAY_MS = 5000;
const MAX_DELAYED = 1000;
/** Per hour and e-mail address. */
const MAX_MAILS_PER_CLIENT = 5;
/** Per hour and e-mail address, for all unknown clients together. */
const MAX_MAILS_OF_UNKNOWN_CLIENTS = 20;
const KNOWN_MS = 30 * 24 * HOUR_MS;

export class SignInLimits {
  readonly #options: SignInLimitOptions;
  readonly #clients: AttemptCounter;
  readonly #networks: AttemptCounter;
  readonly #unknownClients: AttemptCounter;
  readonly #confirmations: AttemptCounter;
  readonly #mailsOfClients: AttemptCounter;
  readonly #mailsOfUnknownClients: AttemptCounter;
  /** Clients that signed in within {@link KNOWN_MS}. */
  readonly #knownClients: RecentNames;
  readonly #delayedClients = new Set<string>();

  constructor(options: SignInLimitOptions) {
    const { maxPerQuarterHour, now, attempts = localAttempts(now) } = options;
    this.#options = options;
    const limit = (name: string, maxAttempts: number, windowMs: number) => attempts.counter(name, { maxAttempts, windowMs });
    this.#clients = limit('sign-ins of a client', maxPerQuarterHour, QUARTER_MS);
    this.#networks = limit('sign-ins of a network', SHARED_LIMIT_FACTOR * maxPerQuarterHour, QUARTER_MS);
    this.#unknownClients = limit('sign-ins of strangers', SHARED_LIMIT_FACTOR * maxPerQuarterHour, QUARTER_MS);
    this.#confirmations = limit('password confirmations of a session', maxPerQuarterHour, QUARTER_MS);
    this.#mailsOfClients = limit('mails of a client', MAX_MAILS_PER_CLIENT, HOUR_MS);
    this.#mailsOfUnknownClients = limit('mails of strangers', MAX_MAILS_OF_UNKNOWN_CLIENTS, HOUR_MS);
    this.#knownClients = attempts.recentNames('known clients', { lifetimeMs: KNOWN_MS });
  }

  /** Counts an attempt. The caller must refuse the attempt if a {@link SignInBlock} is returned. Rejects if the shared counters fail. */
  async begin(client: SignInClient): Promise<SignInAttempt | SignInBlock> {
    if (this.#options.maxPerQuarterHour === 0) return { isDelayed: false, refund: async () => {} };
    const ofClient = [this.#clients, nameOf(client)] as const;
    const counted = await countInAll(client.knownBrowserId === null ? [ofClient, [this.#networks, client.network]] : [ofClient]);
    if (!counted.isAdmitted) return { by: counted.refusedBy === this.#networks ? 'network' : 'email', retryAfter: counted.retryAfter };
    try {
      if (await this.#isKnown(client)) return { isDelayed: false, refund: counted.refund };
      const ofUnknownClients = await countInAll([[this.#unknownClients, client.email]]);
      if (!ofUnknownClients.isAdmitted) return { isDelayed: true, refund: counted.refund };
      return { isDelayed: false, refund: async () => void (await Promise.all([counted.refund(), ofUnknownClients.refund()])) };
    } catch (error) {
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

  /**
   * Waits before an attempt with `isDelayed`. Returns false at once if an attempt of the same client waits, or too many wait. Rejects when
   * the client disconnects.
   */
  async delay(client: SignInClient, signal: AbortSignal): Promise<boolean> {
    const name = nameOf(client);
    if (this.#delayedClients.has(name) || this.#delayedClients.size >= MAX_DELAYED) return false;
    this.#delayedClients.add(name);
    try {
      await this.#options.pause(DELAY_MS, signal);
      return true;
    } finally {
      this.#delayedClients.delete(name);
    }
  }

  async recordSuccess(client: SignInClient): Promise<void> {
    await this.#knownClients.add(nameOf(client));
  }

  /** Counts an e-mail. If a limit is reached, returns false, and the e-mail must not be sent. */
  async admitMail(client: SignInClient): Promise<boolean> {
    if (this.#options.maxPerQuarterHour === 0) return true;
    const ofClient = [this.#mailsOfClients, nameOf(client)] as const;
    const isKnown = await this.#isKnown(client);
    const counted = await countInAll(isKnown ? [ofClient] : [ofClient, [this.#mailsOfUnknownClients, client.email]]);
    return counted.isAdmitted;
  }

  async #isKnown(client: SignInClient): Promise<boolean> {
    return client.knownBrowserId !== null || (await this.#knownClients.has(nameOf(client)));
  }
}

/** Normalized e-mail address of bounded length, for the counters. */
export function normalizeEmail(email: string): string {
  return email.trim().toLowerCase().slice(0, 320);
}

function nameOf({ email, network, knownBrowserId }: SignInClient): string {
  return JSON.stringify([email, knownBrowserId === null ? { network } : { device: knownBrowserId }]);
}
