/** Formats earnings for the command `earnings`: as text in 80 columns, and as CSV. */
import type { MachineEarnings } from '@inference/protocol';
import type { EarningsView, Sum } from '../../account/earnings.js';
import type { EarningsForecast, ElectricityEstimate } from '../../account/earnings-forecast.js';
import { fit, left, right } from './columns.js';
import { clean, count, dollars, wrapped } from './terminal.js';

const NAME_COLUMNS = 30;
const MAX_MODELS = 12;

type Row = Sum & { readonly duty?: number | null };

export function earningsLines(earnings: MachineEarnings, view: EarningsView): string[] {
  const { account_name, time_zone, account } = earnings;
  const days = view.days.length;
  const whose = `Earnings of this machine, for ${clean(account_name || 'your account')} (days of ${clean(time_zone)})`;
  const more = view.models.length - MAX_MODELS;
  return [
    fit(whose, 80),
    '',
    head(''),
    row('Today', view.today),
    ...(days >= 7 ? [row('Last 7 days', view.week)] : []),
    '',
    head(days === 1 ? 'By model, today' : `By model, last ${days} days`),
    ...(view.models.length === 0
      ? ['  nothing yet']
      : view.models.slice(0, MAX_MODELS).map((model) => row(`  ${clean(model.model)}`, model))),
    ...(more > 0 ? [`  and ${more} more (see --json)`] : []),
    '',
    head('By day'),
    ...view.days.map((day) => row(`  ${dayText(day.day)}`, day)),
    '',
    ...accountLines(account),
  ];
}

/** CSV (RFC 4180) with a heading: a line per day and model of this machine, oldest first. Amounts are exact, in USD. */
export function earningsCsv({ provider_id, time_zone, data }: MachineEarnings): string[] {
  const head = ['day', 'time_zone', 'provider_id', 'model', 'requests', 'prompt_tokens', 'completion_tokens', 'images', 'earned_usd'];
  const rows = data.map((row) => [
    row.day,
    time_zone,
    provider_id,
    row.model,
    row.requests,
    row.prompt_tokens,
    row.completion_tokens,
    row.images,
    dollars(row.earned_micro_usd).replace('$', ''),
  ]);
  return [head, ...rows].map((row) => row.map((value) => csvField(String(value))).join(','));
}

/** Quotes a field if necessary. A leading apostrophe prevents spreadsheets from evaluating a text as a formula. */
function csvField(value: string): string {
  const text = clean(value);
  const safe = /^[=+@\t]|^-(?!\d)/.test(text) ? `'${text}` : text;
  return /[",]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** @param isElectricityAsked Whether the owner asked for electricity, so that a missing estimate is explained. */
export function forecastLines(
  forecast: EarningsForecast | null,
  electricity: ElectricityEstimate | null,
  isElectricityAsked: boolean,
): string[] {
  return [
    ...wrapped(
      'Next 30 days     ',
      forecast === null
        ? 'no estimate: no complete day with earnings in this period'
        : `~${dollars(forecast.next_30_days_micro_usd)} (estimate: the mean of the last ${forecast.from_days} complete days)`,
    ),
    ...(electricity === null
      ? isElectricityAsked
        ? wrapped('Electricity      ', 'no estimate: give --watts if the power of this chip is unknown; it also needs a day of activity')
        : []
      : wrapped(
          'Electricity      ',
          `~${dollars(electricity.cost_per_day_micro_usd)} a day for ${electricity.kwh_per_day} kWh (estimate from power and busy time)`,
        )),
  ];
}

function accountLines({
  machines,
  earned_total_micro_usd,
  withdrawable_micro_usd,
  pending_micro_usd = 0,
  maturing: [next] = [],
}: MachineEarnings['account']): string[] {
  const all = machines === 1 ? 'this machine' : `all ${machines} machines`;
  return [
    `Withdrawable     ${dollars(withdrawable_micro_usd)}`,
    ...(pending_micro_usd === 0
      ? []
      : [
          `Pending          ${dollars(pending_micro_usd)}${next === undefined ? '' : `; ${dollars(next.amount_micro_usd)} on ${next.at.slice(0, 10)}`}`,
        ]),
    `Earned in all    ${dollars(earned_total_micro_usd)} by the account, with ${all}`,
  ];
}

function head(name: string): string {
  return `${left(name, NAME_COLUMNS)}${right('earned', 14)}${right('requests', 11)}${right('tokens', 15)}${right('busy', 8)}`;
}

function row(name: string, { earned, requests, tokens, images, duty }: Row): string {
  const work = tokens === 0 && images > 0 ? `${count(images)} images` : count(tokens);
  const busy = duty === undefined ? '' : duty === null ? '-' : `${(duty * 100).toFixed(duty < 0.1 ? 1 : 0)}%`;
  return `${left(name, NAME_COLUMNS)}${right(dollars(earned), 14)}${right(count(requests), 11)}${right(work, 15)}${right(busy, 8)}`;
}

function dayText(day: string): string {
  const weekday = new Date(`${day}T00:00:00Z`).toLocaleDateString('en-GB', { weekday: 'short', timeZone: 'UTC' });
  return `${weekday} ${day}`;
}
