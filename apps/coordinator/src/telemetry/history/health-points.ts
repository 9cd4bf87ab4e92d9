/** Points of the health history: figures of coordinators per interval, in the form of the admin API. Pure. */
import { type AdminHealthPoint, ERRORS } from '@inference/formats';
import { addCounts, type Counts, type HealthFigures, laterLedger, quantileOf } from './health-figures.js';

/** Maximum codes and trust levels per point. */
const MAX_CODES = 20;

interface SlotFigures {
  /** Beginning of the slot, in milliseconds since 1970. */
  readonly slotAt: number;
  readonly figures: HealthFigures;
}

/** One point per slot from `from` to before `to`, in milliseconds, also for slots without figures. */
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

function pointOf(at: number, parts: readonly HealthFigures[]): AdminHealthPoint {
  const jobs = total(parts, (part) => part.jobs);
  const failures = Object.entries(jobs).filter(([code]) => kindOf(code) === 'failed');
  const average = (read: (part: HealthFigures) => number): number =>
    rounded(parts.reduce((sum, part) => sum + read(part) / Math.max(1, part.samples), 0));
  const ledger = parts.reduce((latest: HealthFigures['ledger'], part) => laterLedger(latest, part.ledger), null);
  const levels = [...new Set(parts.flatMap(({ providers }) => Object.keys(providers)))].sort().slice(0, MAX_CODES);
  return {
    at: new Date(at).toISOString(),
    coordinators: parts.length,
    requests: requestCounts(jobs),
    failures: failures
      .map(([code, count]) => ({ code, count }))
      .sort((a, b) => b.count - a.count || (a.code < b.code ? -1 : 1))
      .slice(0, MAX_CODES),
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

/** A provider that refuses a sealed request answers, so the network did not fail. Statuses from 500 on are failures. */
function kindOf(end: string): RequestKind {
  if (end === 'delivered') return 'delivered';
  if (end === 'client_gone') return 'cancelled';
  if (end === 'refused') return 'refused';
  const status = end in ERRORS ? ERRORS[end as keyof typeof ERRORS].status : 500;
  return status < 500 ? 'refused' : 'failed';
}

function requestCounts(jobs: Counts): AdminHealthPoint['requests'] {
  const counts = { delivered: 0, cancelled: 0, refused: 0, failed: 0 };
  for (const [end, count] of Object.entries(jobs)) counts[kindOf(end)] += count;
  return counts;
}

function percentiles(seconds: Counts): AdminHealthPoint['latency_ms'] {
  const [p50, p95] = [quantileOf(seconds, 0.5), quantileOf(seconds, 0.95)];
  return p50 === null || p95 === null ? null : { p50: rounded(1000 * p50), p95: rounded(1000 * p95) };
}

function total(parts: readonly HealthFigures[], read: (part: HealthFigures) => Counts): Counts {
  return parts.reduce((sum: Counts, part) => addCounts(sum, read(part)), {});
}

/** One decimal. */
function rounded(value: number): number {
  return Math.round(10 * value) / 10;
}
