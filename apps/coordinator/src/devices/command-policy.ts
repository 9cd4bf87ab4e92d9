/**
 * Decides which command a device needs now. Pure: the history of its commands, the clock and the rules come in, and a
 * decision comes out with its reason and, where it is to wait, until when.
 */
import type { CommandKind } from './commands.js';

export interface ScheduleRules {
  /** Protections are asked for this often. In milliseconds, as everything here. */
  readonly securityIntervalMs: number;
  /** An answer counts only this long after the command. */
  readonly commandLifetimeMs: number;
  /** A maker issues a new attestation at most about this often; a certificate of this age is asked to be renewed. */
  readonly attestationRenewMs: number;
  /** Pause after an attestation that came from the device's cache, with another nonce than ours. */
  readonly staleRetryMs: number;
  /** Pause after the first failure; it doubles with each further one in a row. */
  readonly firstRetryMs: number;
  readonly maxRetryMs: number;
  /** After this many failures in a row a device is left alone for {@link giveUpMs}. */
  readonly giveUpAfter: number;
  readonly giveUpMs: number;
  /** Least pause between two commands of one kind, whatever is doubted. */
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

/** How a command ended. `taken` alone is a success. */
export type CommandOutcome =
  | 'taken'
  /** No answer in time. */
  | 'unanswered'
  /** The management server did not take the command. */
  | 'not_sent'
  /** The device answered with an error. */
  | 'device_error'
  /** The attestation carries the freshness code of another nonce: it came from the device's cache. */
  | 'stale_attestation'
  /** The device sent no attestation. */
  | 'no_attestation'
  /** The answer was refused. */
  | 'refused';

/** A command of the past. `outcome` null: still awaited. */
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
  /** When the certificate in force was issued; null when none is. Only attestations have one. */
  readonly certifiedAt: number | null;
  /** Something contradicts the newest answer since this time; null: nothing does. */
  readonly doubtedSince: number | null;
}

export type Decision =
  | { readonly act: 'send'; readonly reason: SendReason }
  | { readonly act: 'wait'; readonly until: number; readonly reason: WaitReason };

export type SendReason = 'first' | 'due' | 'doubted' | 'retry' | 'renew';
export type WaitReason =
  | 'awaiting_answer'
  | 'fresh'
  | 'certificate_young'
  | 'just_asked'
  | 'stale_attestation'
  | 'failed_before'
  /** Too many failures in a row; {@link lastFailure} says of which kind. */
  | 'given_up';

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

function whenDue(needs: DeviceNeeds, last: PastCommand, rules: ScheduleRules): Due {
  const endedAt = last.endedAt ?? last.expiresAt;
  const failures = failuresInARow(needs.history);
  if (failures > 0) return whenToRetry(failures, last, endedAt, rules);
  if (needs.doubtedSince !== null && needs.doubtedSince > last.sentAt) return { at: needs.doubtedSince, send: 'doubted', wait: 'fresh' };
  switch (needs.kind) {
    case 'security_info':
      return { at: last.sentAt + spread(rules.securityIntervalMs, last.uuid), send: 'due', wait: 'fresh' };
    case 'device_information': {
      if (needs.certifiedAt === null)
        return { at: endedAt + spread(rules.staleRetryMs, last.uuid), send: 'retry', wait: 'stale_attestation' };
      // A device may go on showing its cached certificate for a while after the week; asking it daily is enough.
      const renewal = Math.max(needs.certifiedAt + rules.attestationRenewMs, endedAt + rules.staleRetryMs);
      return { at: renewal + (spread(rules.staleRetryMs, last.uuid) - rules.staleRetryMs), send: 'renew', wait: 'certificate_young' };
    }
  }
}

function whenToRetry(failures: number, last: PastCommand, endedAt: number, rules: ScheduleRules): Due {
  if (last.outcome === 'stale_attestation') {
    return { at: endedAt + spread(rules.staleRetryMs, last.uuid), send: 'retry', wait: 'stale_attestation' };
  }
  if (failures >= rules.giveUpAfter) return { at: endedAt + spread(rules.giveUpMs, last.uuid), send: 'retry', wait: 'given_up' };
  const pause = Math.min(rules.maxRetryMs, rules.firstRetryMs * 2 ** (failures - 1));
  return { at: endedAt + spread(pause, last.uuid), send: 'retry', wait: 'failed_before' };
}

/** Commands since the last success that failed; one that is awaited no more has failed. */
export function failuresInARow(history: readonly PastCommand[]): number {
  const success = history.findIndex((command) => command.outcome === 'taken');
  return success === -1 ? history.length : success;
}

/** Why the newest command failed, or null when it did not. `unanswered` also when nobody wrote that down. */
export function lastFailure(history: readonly PastCommand[]): string | null {
  const last = history[0];
  if (last === undefined || last.outcome === 'taken') return null;
  return last.outcome ?? 'unanswered';
}

/**
 * A pause with up to a fifth of it added, so that devices do not answer in step. It depends on the last command alone: the
 * same question gets the same answer until something happens.
 */
function spread(pauseMs: number, uuid: string): number {
  let hash = 0;
  for (let i = 0; i < uuid.length; i++) hash = Math.imul(hash ^ uuid.charCodeAt(i), 0x9e3779b1);
  hash = (hash ^ (hash >>> 15)) >>> 0;
  return Math.round(pauseMs * (1 + (hash / 2 ** 32) * 0.2));
}
