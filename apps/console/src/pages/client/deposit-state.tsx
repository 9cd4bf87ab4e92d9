/** Texts for the methods of deposits, and the badge `DepositState`, for lists and receipts. */
import type { ConsoleDeposit } from '@inference/formats';
import { formatUsd } from '../../ui/display/figures.js';
import { Badge } from '../../ui/display/page.js';
import type { Tone } from '../../ui/feedback/note.js';

export const DEPOSIT_METHODS: Readonly<Record<ConsoleDeposit['source'], string>> = {
  stripe: 'Payment',
  development: 'Test funds',
  admin: 'Deposit by the operator',
};
const STATES: Readonly<Record<ConsoleDeposit['state'], readonly [Tone, string]>> = {
  open: ['neutral', 'Waiting'],
  paid: ['good', 'Paid'],
  expired: ['neutral', 'Expired'],
  failed: ['bad', 'Failed'],
};

export function DepositState({ deposit }: { readonly deposit: ConsoleDeposit }) {
  const [tone, label] = STATES[deposit.state];
  return (
    <span className="inline">
      <Badge tone={tone}>{label}</Badge>
      {deposit.refunded_micro_usd > 0 ? <Badge tone="warn">{`${formatUsd(deposit.refunded_micro_usd)} refunded`}</Badge> : null}
      {deposit.disputed_at === null ? null : <Badge tone="bad">Disputed</Badge>}
    </span>
  );
}
