/** Formats earnings as text, in 80 columns. Pure. */
import type { MachineEarnings } from '@inference/protocol';
import type { EarningsView, Sum } from '../../account/earnings.js';
import { fit, left, right } from './columns.js';
import { clean, count, dollars } from './terminal.js';

const NAME = 30;
const MAX_MODELS = 12;

type Row = Sum & { readonly duty?: number | null };

export function earningsLines(earnings: MachineEarnings, view: EarningsView): string[] {
  const { account_name, time_zone, account } = earnings;
  const days = view.days.length;
  const whose = `Earnings of this machine for ${clean(account_name || 'your account')} (days of ${clean(time_zone)})`;
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
  return `${left(name, NAME)}${right('earned', 14)}${right('requests', 11)}${right('tokens', 15)}${right('busy', 8)}`;
}

function row(name: string, { earned, requests, tokens, images, duty }: Row): string {
  const work = tokens === 0 && images > 0 ? `${count(images)} images` : count(tokens);
  const busy = duty === undefined ? '' : duty === null ? '-' : `${(duty * 100).toFixed(duty < 0.1 ? 1 : 0)} %`;
  return `${left(name, NAME)}${right(dollars(earned), 14)}${right(count(requests), 11)}${right(work, 15)}${right(busy, 8)}`;
}

const WEEKDAY = new Intl.DateTimeFormat('en-GB', { weekday: 'short', timeZone: 'UTC' });

function dayText(day: string): string {
  return `${WEEKDAY.format(Date.parse(`${day}T00:00:00Z`))} ${day}`;
}
