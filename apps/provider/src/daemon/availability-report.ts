/** What others are told of whether this machine serves: the coordinator in codes, the owner in sentences. Pure. */
import type { ReportedAvailability } from '@inference/protocol';
import type { AvailabilityStatus } from '../control/daemon-status.js';
import type { AttendanceStatus } from '../host/availability/availability-controller.js';
import type { OpenAttendance } from './host-availability.js';

export function toldAvailability({ state, reasons, nextChangeAt }: AttendanceStatus): ReportedAvailability {
  const [first] = reasons;
  if (state === 'serving' || first === undefined) return { state };
  // While somebody works, its end is the earliest one and says nothing.
  const until = first.until === null ? null : (nextChangeAt ?? first.until);
  return { state, reason: first.code, ...(until === null ? {} : { until: Math.ceil(until) }) };
}

export function availabilityStatus({ status, pause, keepsAwake }: OpenAttendance): AvailabilityStatus {
  return {
    state: status.state,
    reasons: status.reasons.map(({ code, text, until }) => ({ code, text, until: until === null ? null : Math.ceil(until) })),
    next_change_at: status.nextChangeAt === null ? null : Math.ceil(status.nextChangeAt),
    pause,
    keeps_awake: keepsAwake,
  };
}
