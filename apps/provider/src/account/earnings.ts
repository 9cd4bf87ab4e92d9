/** Requests the earnings of this machine from the coordinator, with the machine token, and sums them up by day and model. */
import { lazyValidator, MAX_EARNING_DAYS, type MachineEarnings, MachineEarningsSchema } from '@inference/protocol';
import type { Account } from './account-file.js';
import { CoordinatorError, errorSentence, requestCoordinator } from './coordinator-http.js';
import type { ActivityHour } from './duty-cycle.js';

const earningsValidator = lazyValidator(MachineEarningsSchema);
export const MAX_DAYS = MAX_EARNING_DAYS;

/** The token is no longer valid: the machine was unlinked. */
export class UnlinkedError extends Error {
  override name = 'UnlinkedError';
}

/** Throws {@link CoordinatorError} and {@link UnlinkedError}. */
export async function fetchEarnings(
  account: Account,
  { days, timeZone, signal, ms }: { readonly days: number; readonly timeZone: string; readonly signal?: AbortSignal; readonly ms?: number },
): Promise<MachineEarnings> {
  const query = new URLSearchParams({ days: String(days), time_zone: timeZone });
  const answer = await requestCoordinator(account.coordinator, `/v1/machine/earnings?${query}`, {
    token: account.token,
    ...(signal === undefined ? {} : { signal }),
    ...(ms === undefined ? {} : { ms }),
  });
  const { status, value } = answer;
  if (status === 401) throw new UnlinkedError('this machine is no longer linked to an account; run "inference-provider login"');
  if (status === 404)
    throw new CoordinatorError('refused', `the coordinator ${account.coordinator} does not support earnings of machines`, status);
  if (status !== 200)
    throw new CoordinatorError(status >= 500 || status === 429 ? 'unreachable' : 'refused', errorSentence(answer), status);
  if (!earningsValidator().Check(value))
    throw new CoordinatorError('invalid_answer', `the answer of ${account.coordinator} was not understood`, status);
  return value;
}

export interface Sum {
  readonly requests: number;
  readonly tokens: number;
  readonly images: number;
  /** Micro-USD. */
  readonly earned: number;
}

/** Sums of this machine. `duty` is the duty cycle: the share of the connected time with running jobs. Null without records. */
export interface EarningsView {
  readonly today: Sum & { readonly duty: number | null };
  readonly week: Sum & { readonly duty: number | null };
  /** Sums by model over all requested days, highest earnings first. */
  readonly models: readonly (Sum & { readonly model: string })[];
  /** Every requested day, newest first, including days without work. */
  readonly days: readonly (Sum & { readonly day: string; readonly duty: number | null })[];
}

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
const WEEK = 7;

/** Sums up earnings and the hours that this machine recorded (`activity`). */
export function viewOf({ data, from, to, time_zone }: MachineEarnings, activity: readonly ActivityHour[]): EarningsView {
  const dayOf = dayNamer(time_zone);
  const hours = activity.map((hour) => ({ ...hour, day: dayOf(hour.hour * HOUR_MS) }));
  const days = daysBetween(from, to).reverse();
  const week = days.slice(0, WEEK);
  const within = (names: readonly string[]) => {
    const requested = new Set(names);
    return { ...sum(data.filter(({ day }) => requested.has(day))), duty: duty(hours.filter(({ day }) => requested.has(day))) };
  };
  const models = [...new Set(data.map(({ model }) => model))].map((model) => ({
    model,
    ...sum(data.filter((row) => row.model === model)),
  }));
  return {
    today: within([to]),
    week: within(week),
    models: models.sort((a, b) => b.earned - a.earned || b.requests - a.requests || (a.model < b.model ? -1 : 1)),
    days: days.map((day) => ({ day, ...within([day]) })),
  };
}

function sum(rows: MachineEarnings['data']): Sum {
  return rows.reduce(
    (all, row) => ({
      requests: all.requests + row.requests,
      tokens: all.tokens + row.prompt_tokens + row.completion_tokens,
      images: all.images + row.images,
      earned: all.earned + row.earned_micro_usd,
    }),
    { requests: 0, tokens: 0, images: 0, earned: 0 },
  );
}

function duty(hours: readonly ActivityHour[]): number | null {
  const connected = hours.reduce((all, { connected_ms }) => all + connected_ms, 0);
  return connected === 0 ? null : hours.reduce((all, { busy_ms }) => all + busy_ms, 0) / connected;
}

/** An hour across midnight counts to the earlier day. */
function dayNamer(timeZone: string): (ms: number) => string {
  const format = new Intl.DateTimeFormat('en-CA', { timeZone, year: 'numeric', month: '2-digit', day: '2-digit' });
  return (ms) => format.format(ms);
}

/** Both included. The list is bounded, because the coordinator's answer may be wrong. */
function daysBetween(from: string, to: string): string[] {
  const days: string[] = [];
  for (let at = Date.parse(`${from}T00:00:00Z`); at <= Date.parse(`${to}T00:00:00Z`) && days.length < 400; at += DAY_MS) {
    days.push(new Date(at).toISOString().slice(0, 10));
  }
  return days;
}
