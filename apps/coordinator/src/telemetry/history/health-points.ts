/** `healthPoints` converts the stored figures of all coordinators to the chart points of `GET /admin/v1/health/history`. */
import { type AdminHealthPoint, ERRORS } from '@inference/formats';
import { addCounts, type Counts, type HealthFigures, laterLedger, quantileOf } from './health-figures.js';

/** Maximum error codes and trust levels per point. */
const MAX_KEYS = 20;

/** Figures of one coordinator in one slot, an interval of fixed length. */
interface SlotFigures {
  /** Start of the slot, in milliseconds since 1970. */
  readonly slotAt: number;
  readonly figures: HealthFigures;
}

/**
 * Returns a point for each slot that starts in [from, to), even if no coordinator ran then. `from` must be the start of a slot.
 *
 * Times are in milliseconds since 1970.
 */
export function healthPoints(
  rows: readonly SlotFigures[],
  { from, to, slotMs }: { readonly from: number; readonly to: number; readonly slotMs: number },
): AdminHealthPoint[] {
  const bySlot = new Map<number, HealthFigures[]>();
  for (const { slotAt, figures } of rows) bySlot.set(slotAt, [...(bySlot.get(slotAt) ?? []), figures]);
  return Array.from({ length: Math.ceil((to - from) / slotMs) }, (_, index) => {
    const at = from + index * slotMs;
    return pointOf(at, bySlot.get(at) ?? []);
  });
}

/** `parts`: figures of each coordinator that ran during the slot. */
function pointOf(at: number, parts: readonly HealthFigures[]): AdminHealthPoint {
  const jobs = total(parts, (part) => part.jobs);
  const failures = Object.entries(jobs).filter(([outcome]) => kindOf(outcome) === 'failed');
  const average = (read: (part: HealthFigures) => number): number =>
    rounded(parts.reduce((sum, part) => sum + read(part) / Math.max(1, part.samples), 0));
  const ledger = parts.reduce((latest: HealthFigures['ledger'], part) => laterLedger(latest, part.ledger), null);
  const levels = [...new Set(parts.flatMap(({ providers }) => Object.keys(providers)))].sort().slice(0, MAX_KEYS);
  return {
    at: new Date(at).toISOString(),
    coordinators: parts.length,
    requests: requestCounts(jobs),
    failures: failures
      .map(([code, count]) => ({ code, count }))
      .sort((a, b) => b.count - a.count || (a.code < b.code ? -1 : 1))
      .slice(0, MAX_KEYS),
    latency_ms: percentiles(total(parts, (part) => part.jobSeconds)),
    first_token_ms: percentiles(total(parts, (part) => part.firstTokenSeconds)),
    queue: { average: average(({ sums }) => sums.waiting), max: parts.reduce((sum, { maxWaiting }) => sum + maxWaiting, 0) },
    running_jobs: average(({ sums }) => sums.running),
    providers: levels.map((level) => ({ trust_level: level, average: average(({ providers }) => providers[level] ?? 0) })),
    routable: average(({ sums }) => sums.routable),
    slots: average(({ sums }) => sums.slots),
    used_slots: average(({ sums }) => sums.usedSlots),
    event_loop_lag_ms: Math.max(0, ...parts.map(({ maxLoopLagMs }) => maxLoopLagMs)),
    ledger:
      ledger === null
        ? null
        : {
            owed_micro_usd: ledger.owed,
            reserved_micro_usd: ledger.held,
            fees_micro_usd: ledger.fees,
            requested_withdrawals_micro_usd: ledger.requestedWithdrawals,
            problems: ledger.problems,
          },
  };
}

type RequestKind = keyof AdminHealthPoint['requests'];

/** Kind of an ended job. Error codes with HTTP status 500 or above are failures. Others are refused requests. */
function kindOf(outcome: string): RequestKind {
  if (outcome === 'delivered') return 'delivered';
  if (outcome === 'client_gone') return 'cancelled';
  if (outcome === 'refused') return 'refused';
  const status = outcome in ERRORS ? ERRORS[outcome as keyof typeof ERRORS].status : 500;
  return status < 500 ? 'refused' : 'failed';
}

function requestCounts(jobs: Counts): AdminHealthPoint['requests'] {
  const counts = { delivered: 0, cancelled: 0, refused: 0, failed: 0 };
  for (const [outcome, count] of Object.entries(jobs)) counts[kindOf(outcome)] += count;
  return counts;
}

function percentiles(seconds: Counts): AdminHealthPoint['latency_ms'] {
  const [p50, p95] = [quantileOf(seconds, 0.5), quantileOf(seconds, 0.95)];
  return p50 === null || p95 === null ? null : { p50: rounded(1000 * p50), p95: rounded(1000 * p95) };
}

function total(parts: readonly HealthFigures[], read: (part: HealthFigures) => Counts): Counts {
  return parts.reduce((sum: Counts, part) => addCounts(sum, read(part)), {});
}

/** Rounds to one decimal place. */
function rounded(value: number): number {
  return Math.round(10 * value) / 10;
}
