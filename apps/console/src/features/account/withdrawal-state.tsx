/** Badge for the state of a withdrawal. */
import type { ConsoleWithdrawal } from '@inference/formats';
import { Badge } from '../../ui/display/page.js';

const STATES = {
  requested: { label: 'Requested', tone: 'accent' },
  paid: { label: 'Paid', tone: 'good' },
  rejected: { label: 'Rejected', tone: 'warn' },
} as const;

export function WithdrawalState({ state }: { readonly state: ConsoleWithdrawal['state'] }) {
  const { label, tone } = STATES[state];
  return <Badge tone={tone}>{label}</Badge>;
}
