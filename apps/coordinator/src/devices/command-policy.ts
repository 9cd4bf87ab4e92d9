/** `decide` determines whether a device gets a device-management command now, or when it may get the next. Used by `CommandWorker`. */
import type { CommandKind } from './commands.js';

export interface ScheduleRules {
  /** Interval of queries for the state of protections. All times in milliseconds. */
  readonly securityIntervalMs: number;
  /** Maximum time from a command to its answer. */
  readonly commandLifetimeMs: number;
  /** Age at which the attestation certificate is renewed. Apple issues new ones only about this often. */
  readonly attestationRenewMs: number;
  /** Pause after the device returned a cached attestation, which contains an old nonce. */
  readonly staleRetryMs: number;
  /** Pause after the first failure. Doubles with each consecutive failure. */
  readonly firstRetryMs: number;
  readonly maxRetryMs: number;
  /** Number of consecutive failures after which a device pauses for {@link giveUpMs}. */
  readonly giveUpAfter: number;
  readonly giveUpMs: number;
  /** Minimum pause between two commands of the same kind, even if the last answer may be outdated. */
  readonly minPauseMs: number;
}

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

export const SCHEDULE_RULES: ScheduleRules = {
  securityIntervalMs: HOUR,
  commandLifetimeMs: 10 * MINUTE,
  attestationRenewMs: 7 * DAY,
  staleRetryMs: 12 * HOUR,
  firstRetryMs: MINUTE,
  maxRetryMs: 2 * HOUR,
  giveUpAfter: 8,
  giveUpMs: DAY,
  minPauseMs: MINUTE,
};

/** Outcome of a command. `taken`: the answer was accepted. All others are failures. */
export type CommandOutcome =
  | 'taken'
  /** No answer arrived in time. */
  | 'unanswered'
  /** The management server did not accept the command. */
  | 'not_sent'
  /** The device answered with an error. */
  | 'device_error'
  /** The device returned a cached attestation, which contains another nonce. */
  | 'stale_attestation'
  /** The answer contains no attestation. */
  | 'no_attestation'
  /** The answer was rejected. */
  | 'refused';

/** A command sent earlier. `outcome` is null if there is no answer yet. */
export interface PastCommand {
  readonly uuid: string;
  readonly sentAt: number;
  readonly expiresAt: number;
  readonly endedAt: number | null;
  readonly outcome: string | null;
}

export interface DeviceNeeds {
  readonly kind: CommandKind;
  /** Commands of this kind to this device, newest first. */
  readonly history: readonly PastCommand[];
  /** When the current certificate was issued; null: none. Only attestations have certificates. */
  readonly certifiedAt: number | null;
  /** When the device last reconnected, so that older answers may be outdated; null: never. */
  readonly staleSince: number | null;
}

export type Decision =
  | { readonly act: 'send'; readonly reason: SendReason }
  | { readonly act: 'wait'; readonly until: number; readonly reason: WaitReason };

type SendReason = 'first' | 'due' | 'doubted' | 'retry' | 'renew';
type WaitReason =
  | 'awaiting_answer'
  | 'fresh'
  | 'certificate_young'
  | 'just_asked'
  | 'stale_attestation'
  | 'failed_before'
  /** Too many consecutive failures. {@link lastFailure} returns the last one. */
  | 'given_up';

/** Decides for one device and kind of command. `now`: milliseconds since 1970. */
export function decide(needs: DeviceNeeds, now: number, rules: ScheduleRules): Decision {
  const { history } = needs;
  const last = history[0];
  if (last === undefined) return { act: 'send', reason: 'first' };
  if (last.outcome === null && now < last.expiresAt) return { act: 'wait', until: last.expiresAt, reason: 'awaiting_answer' };
  const due = whenDue(needs, last, rules);
  const until = Math.max(due.at, last.sentAt + rules.minPauseMs);
  if (now >= until) return { act: 'send', reason: due.send };
  return { act: 'wait', until, reason: due.at > last.sentAt + rules.minPauseMs ? due.wait : 'just_asked' };
}

interface Due {
  readonly at: number;
  readonly send: SendReason;
  readonly wait: WaitReason;
}

/** When the next command is due after the last one has ended, without the minimum pause. */
function whenDue(needs: DeviceNeeds, last: PastCommand, rules: ScheduleRules): Due {
  const endedAt = last.endedAt ?? last.expiresAt;
  const failures = failuresInARow(needs.history);
  if (failures > 0) return whenToRetry(failures, last, endedAt, rules);
  if (needs.staleSince !== null && needs.staleSince > last.sentAt) return { at: needs.staleSince, send: 'doubted', wait: 'fresh' };
  switch (needs.kind) {
    case 'security_info':
      return { at: last.sentAt + addJitter(rules.securityIntervalMs, last.uuid), send: 'due', wait: 'fresh' };
    case 'device_information': {
      if (needs.certifiedAt === null)
        return { at: endedAt + addJitter(rules.staleRetryMs, last.uuid), send: 'retry', wait: 'stale_attestation' };
      // A device may return its cached certificate for a while after a week, so a daily query is enough.
      const renewal = Math.max(needs.certifiedAt + rules.attestationRenewMs, endedAt + rules.staleRetryMs);
      return { at: renewal + (addJitter(rules.staleRetryMs, last.uuid) - rules.staleRetryMs), send: 'renew', wait: 'certificate_young' };
    }
  }
}

function whenToRetry(failures: number, last: PastCommand, endedAt: number, rules: ScheduleRules): Due {
  if (last.outcome === 'stale_attestation') {
    return { at: endedAt + addJitter(rules.staleRetryMs, last.uuid), send: 'retry', wait: 'stale_attestation' };
  }
  if (failures >= rules.giveUpAfter) return { at: endedAt + addJitter(rules.giveUpMs, last.uuid), send: 'retry', wait: 'given_up' };
  const pause = Math.min(rules.maxRetryMs, rules.firstRetryMs * 2 ** (failures - 1));
  return { at: endedAt + addJitter(pause, last.uuid), send: 'retry', wait: 'failed_before' };
}

/** Number of failed commands since the last success. An expired command is a failure. */
export function failuresInARow(history: readonly PastCommand[]): number {
  const success = history.findIndex((command) => command.outcome === 'taken');
  return success === -1 ? history.length : success;
}

/** Outcome of the newest command if it failed, otherwise null. `unanswered` also for an expired command. */
export function lastFailure(history: readonly PastCommand[]): string | null {
  const last = history[0];
  if (last === undefined || last.outcome === 'taken') return null;
  return last.outcome ?? 'unanswered';
}

/** Adds up to a fifth to a pause, to spread the devices. Derived from the last command's id, so that decisions are reproducible. */
function addJitter(pauseMs: number, uuid: string): number {
  let hash = 0;
  for (let i = 0; i < uuid.length; i++) hash = Math.imul(hash ^ uuid.charCodeAt(i), 0x9e3779b1);
  hash = (hash ^ (hash >>> 15)) >>> 0;
  return Math.round(pauseMs * (1 + (hash / 2 ** 32) * 0.2));
}
