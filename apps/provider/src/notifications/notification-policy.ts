/** `NotificationPolicy` decides which notifications the owner gets, from events of the daemon and the time. `Notifier` shows them. */
import { cleanLabel, type TrustMessage } from '@inference/protocol';

export type NotificationEvent =
  | { readonly type: 'connected' }
  | { readonly type: 'disconnected' }
  | { readonly type: 'job_completed' }
  /** A job failed by this machine's fault. */
  | { readonly type: 'job_failed' }
  | { readonly type: 'model_disabled'; readonly model: string }
  | { readonly type: 'trust'; readonly level: TrustLevel }
  /** The coordinator reported a linked account: after linking, or after a reconnect. */
  | { readonly type: 'linked' }
  | { readonly type: 'earnings'; readonly earnings: TotalEarnings }
  /** A new version is prepared. The owner must start it, because no service manager does. */
  | { readonly type: 'update_ready'; readonly version: string }
  /** The coordinator no longer supports the protocol versions of this agent. */
  | { readonly type: 'version_unsupported' }
  /** Regular check, for conditions that depend only on the time. */
  | { readonly type: 'tick' };

export type TrustLevel = TrustMessage['trust_level'];

/** Earnings of the linked account since its start, with all of its machines. */
export interface TotalEarnings {
  /** Name of the account; null if unknown. */
  readonly account: string | null;
  readonly microUsd: number;
}

export const NOTIFICATION_KINDS = ['offline', 'online', 'requests_failing', 'model_failed', 'trust_lost', 'earnings', 'update'] as const;
export type NotificationKind = (typeof NOTIFICATION_KINDS)[number];

/** Time of the last notification of each kind, in milliseconds since 1970. */
export type ShownTimes = Readonly<Partial<Record<NotificationKind, number>>>;

export interface Notification {
  readonly kind: NotificationKind;
  readonly body: string;
}

const MINUTE_MS = 60_000;
/** Time without a connection before the owner is notified. */
export const OFFLINE_MS = 10 * MINUTE_MS;
/** Minimum time between two notifications of a kind. */
export const MIN_INTERVAL_MS = 60 * MINUTE_MS;
/** Time without events after which the machine must have slept. `Notifier` sends a `tick` every `TICK_MS`. */
export const SLEEP_GAP_MS = 5 * MINUTE_MS;
/** Failed jobs in a row before the owner is notified. */
export const FAILURES_BEFORE_NOTIFICATION = 5;
/** Time before the owner is notified. After a reconnect, the level is low until evidence arrives. */
export const TRUST_LOST_MS = 5 * MINUTE_MS;

/** Ascending. */
const LEVELS: readonly TrustLevel[] = ['none', 'self_signed', 'hardware'];
const MICRO_USD_PER_USD = 1_000_000;
const MILESTONES_USD = [1, 10, 100, 1000, 10_000, 100_000] as const;

export class NotificationPolicy {
  /** Start of the current time without a connection; null while connected. */
  #offlineSince: number | null;
  #isOfflineAnnounced = false;
  #failuresInARow = 0;
  /** Current level; null while disconnected. */
  #level: TrustLevel | null = null;
  /** Level below which the owner is notified: the highest so far, or the level in the last `trust_lost` notification. */
  #expectedLevel: TrustLevel = 'none';
  /** Null while the level is not below the expected one. */
  #lowSince: number | null = null;
  #earnings: TotalEarnings | null = null;
  /** Waits if another notification about earnings was shown within the hour. */
  #pendingMilestone: string | null = null;
  #lastEventAt: number;
  #shownAt: ShownTimes;

  /** Starts as disconnected at `now`, in milliseconds since 1970. `shownAt` may come from an earlier process. */
  constructor(now: number, shownAt: ShownTimes = {}) {
    this.#shownAt = shownAt;
    this.#offlineSince = now;
    this.#lastEventAt = now;
  }

  get shownAt(): ShownTimes {
    return this.#shownAt;
  }

  /** Returns the notifications to show; none unless the owner wants notifications (`isOn`). */
  on(event: NotificationEvent, now: number, isOn: boolean): Notification[] {
    this.#forgetSleep(now);
    const shown: Notification[] = [];
    const show = (kind: NotificationKind, body: string): boolean => {
      const last = this.#shownAt[kind];
      if (!isOn || (last !== undefined && now >= last && now - last < MIN_INTERVAL_MS)) return false;
      this.#shownAt = { ...this.#shownAt, [kind]: now };
      shown.push({ kind, body });
      return true;
    };
    this.#apply(event, now, show);
    this.#checkTimes(now, show);
    // A milestone that was reached while notifications were off is not shown later.
    if (!isOn) this.#pendingMilestone = null;
    return shown;
  }

  /** Restarts time measurements if the machine slept since the last event, because the state during sleep is unknown. */
  #forgetSleep(now: number): void {
    const gap = now - this.#lastEventAt;
    this.#lastEventAt = now;
    if (gap >= 0 && gap < SLEEP_GAP_MS) return;
    if (this.#offlineSince !== null) this.#offlineSince = now;
    if (this.#lowSince !== null) this.#lowSince = now;
  }

  /** `show` returns false if the notification must not be shown now. */
  #apply(event: NotificationEvent, now: number, show: (kind: NotificationKind, body: string) => boolean): void {
    switch (event.type) {
      case 'connected':
        if (this.#isOfflineAnnounced) show('online', 'This Mac is connected to the network again.');
        this.#offlineSince = null;
        this.#isOfflineAnnounced = false;
        return;
      case 'disconnected':
        this.#offlineSince ??= now;
        this.#level = null;
        this.#lowSince = null;
        return;
      case 'job_completed':
        this.#failuresInARow = 0;
        return;
      case 'job_failed':
        if (++this.#failuresInARow < FAILURES_BEFORE_NOTIFICATION) return;
        if (show('requests_failing', `The last ${this.#failuresInARow} requests failed on this Mac. Run: inference-provider doctor`)) {
          this.#failuresInARow = 0;
        }
        return;
      case 'model_disabled':
        show('model_failed', `The model ${cleanLabel(event.model, 128, 'unknown')} cannot be loaded. Run: inference-provider status`);
        return;
      case 'trust':
        this.#setLevel(event.level, now);
        return;
      case 'earnings':
        this.#setEarnings(event.earnings);
        return;
      case 'update_ready':
        show('update', `Version ${cleanLabel(event.version, 32, 'unknown')} is ready. To install it, run: inference-provider update`);
        return;
      case 'version_unsupported':
        show('update', 'This version of the agent is too old for the network. Run: inference-provider update');
        return;
      case 'linked':
      case 'tick':
        return;
      default:
        event satisfies never;
    }
  }

  #checkTimes(now: number, show: (kind: NotificationKind, body: string) => boolean): void {
    if (this.#offlineSince !== null && !this.#isOfflineAnnounced && now - this.#offlineSince >= OFFLINE_MS) {
      const body = 'This Mac has not been connected to the network for 10 minutes. Run: inference-provider doctor';
      this.#isOfflineAnnounced = show('offline', body);
    }
    if (this.#pendingMilestone !== null && show('earnings', this.#pendingMilestone)) this.#pendingMilestone = null;
    if (this.#level === null || this.#lowSince === null || now - this.#lowSince < TRUST_LOST_MS) return;
    const body = `The trust level fell from ${levelText(this.#expectedLevel)} to ${levelText(this.#level)}. Run: inference-provider status`;
    if (!show('trust_lost', body)) return;
    this.#expectedLevel = this.#level;
    this.#lowSince = null;
  }

  #setLevel(level: TrustLevel, now: number): void {
    this.#level = level;
    if (LEVELS.indexOf(level) >= LEVELS.indexOf(this.#expectedLevel)) {
      this.#expectedLevel = level;
      this.#lowSince = null;
    } else this.#lowSince ??= now;
  }

  /** Compares a total with the previous total. The first total of an account is not announced, because it may be older. */
  #setEarnings(earnings: TotalEarnings): void {
    const before = this.#earnings;
    this.#earnings = earnings;
    if (before?.account !== earnings.account) this.#pendingMilestone = null;
    if (before === null || before.account !== earnings.account || earnings.microUsd <= before.microUsd) return;
    const isReached = (usd: number): boolean => before.microUsd < usd * MICRO_USD_PER_USD && earnings.microUsd >= usd * MICRO_USD_PER_USD;
    const milestone = MILESTONES_USD.findLast(isReached);
    if (milestone !== undefined) this.#pendingMilestone = `Your account has earned $${milestone.toLocaleString('en-US')} in total.`;
    else if (before.microUsd <= 0) this.#pendingMilestone = 'Your account received its first earnings.';
  }
}

function levelText(level: TrustLevel): string {
  return level === 'self_signed' ? 'self-signed' : level;
}
