/** `NotificationPolicy` decides which notifications the owner sees, from events and the time. No side effects. */
import { cleanLabel, type TrustMessage } from '@inference/protocol';

export type NotificationEvent =
  | { readonly type: 'connected' }
  | { readonly type: 'disconnected' }
  | { readonly type: 'job_completed' }
  /** Failed on this machine, not by the client. */
  | { readonly type: 'job_failed' }
  | { readonly type: 'model_disabled'; readonly model: string }
  | { readonly type: 'trust'; readonly level: TrustLevel }
  /** The coordinator reported a linked account: after linking, or after a reconnect. */
  | { readonly type: 'linked' }
  | { readonly type: 'earnings'; readonly earnings: TotalEarnings }
  /** A prepared version that no service manager starts. */
  | { readonly type: 'update_ready'; readonly version: string }
  /** The coordinator and this version have no common protocol version. */
  | { readonly type: 'version_unsupported' }
  /** Regular check of conditions that only time changes. */
  | { readonly type: 'tick' };

export type TrustLevel = TrustMessage['trust_level'];

/** Sum that the linked account earned with all of its machines. */
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
export const OFFLINE_MS = 10 * MINUTE_MS;
/** Minimum time between two notifications of a kind. */
export const MIN_INTERVAL_MS = 60 * MINUTE_MS;
/** Gap between two events that means the machine was asleep. */
export const SLEEP_GAP_MS = 5 * MINUTE_MS;
export const FAILURES_BEFORE_NOTIFICATION = 5;
/** After a new connection, a lower level may last only until evidence arrives. */
export const TRUST_LOST_MS = 5 * MINUTE_MS;

const LEVELS: readonly TrustLevel[] = ['none', 'self_signed', 'hardware'];
const MICRO_USD = 1_000_000;
const MILESTONES_USD = [1, 10, 100, 1000, 10_000, 100_000] as const;

export class NotificationPolicy {
  /** Start of the current time without a connection; null while connected. */
  #offlineSince: number | null;
  #isOfflineAnnounced = false;
  #failuresInARow = 0;
  #level: TrustLevel | null = null;
  /** Highest level since the last `trust_lost` notification, or the level that it reported. */
  #expectedLevel: TrustLevel = 'none';
  #lowSince: number | null = null;
  #earnings: TotalEarnings | null = null;
  /** First earnings or a milestone that is not shown yet, because another notification of this kind was shown within the hour. */
  #openMilestone: string | null = null;
  #lastEventAt: number;
  #shownAt: ShownTimes;

  /** Not connected at `now`, in milliseconds. `shownAt`: from an earlier process. */
  constructor(now: number, shownAt: ShownTimes = {}) {
    this.#shownAt = shownAt;
    this.#offlineSince = now;
    this.#lastEventAt = now;
  }

  get shownAt(): ShownTimes {
    return this.#shownAt;
  }

  /** Notifications to show after an event. `isOn`: false shows none, and counts none as shown. */
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
    // What happened while notifications were off is not shown later.
    if (!isOn) this.#openMilestone = null;
    return shown;
  }

  /** Nothing is known about the time that the machine slept. */
  #forgetSleep(now: number): void {
    const gap = now - this.#lastEventAt;
    this.#lastEventAt = now;
    if (gap >= 0 && gap < SLEEP_GAP_MS) return;
    if (this.#offlineSince !== null) this.#offlineSince = now;
    if (this.#lowSince !== null) this.#lowSince = now;
  }

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
    if (this.#openMilestone !== null && show('earnings', this.#openMilestone)) this.#openMilestone = null;
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

  /** The first total of an account shows nothing: it may be old. */
  #setEarnings(earnings: TotalEarnings): void {
    const before = this.#earnings;
    this.#earnings = earnings;
    if (before?.account !== earnings.account) this.#openMilestone = null;
    if (before === null || before.account !== earnings.account || earnings.microUsd <= before.microUsd) return;
    const milestone = MILESTONES_USD.findLast((usd) => before.microUsd < usd * MICRO_USD && earnings.microUsd >= usd * MICRO_USD);
    if (milestone !== undefined) this.#openMilestone = `Your account has earned $${milestone.toLocaleString('en-US')} in total.`;
    else if (before.microUsd <= 0) this.#openMilestone = 'Your account received its first earnings.';
  }
}

function levelText(level: TrustLevel): string {
  return level === 'self_signed' ? 'self-signed' : level;
}
