/** `actionText` and `outcomeText`: describe entries of the audit log, from the route, body and outcome of the admin request. */
import type { AdminAction } from '@inference/formats';
import { humanizeCode } from '../../../features/machines/status-texts.js';
import { formatUsd } from '../../../ui/display/figures.js';

type Details = Readonly<Record<string, unknown>>;

const SENTENCES: Readonly<Record<string, (details: Details) => string>> = {
  'POST /admin/v1/providers/:id/quarantine': ({ reason }) => `Quarantined machine: “${toText(reason)}”`,
  'POST /admin/v1/providers/:id/release': () => 'Released machine',
  'POST /admin/v1/providers/:id/reinstate': () => 'Cleared the failures of a machine',
  'POST /admin/v1/providers/:id/link': () => 'Linked machine to account',
  'PATCH /admin/v1/accounts/:id': changesOfAccount,
  'DELETE /admin/v1/accounts/:id/two-factor': () => 'Disabled two-factor authentication of account',
  'GET /admin/v1/accounts/:id/export': () => 'Downloaded the data of account',
  'DELETE /admin/v1/accounts/:id': () => 'Deleted account',
  'GET /admin/v1/actions/export': () => 'Downloaded the audit log',
  'POST /admin/v1/accounts/:id/deposits': ({ amount_micro_usd, reference }) =>
    `Added deposit of ${money(amount_micro_usd)}, reference “${toText(reference)}”`,
  'POST /admin/v1/withdrawals/:id/end': ({ end }) => WITHDRAWAL_ENDS[toText(end)] ?? `Ended a withdrawal: ${toText(end)}`,
  'PUT /admin/v1/prices/*': ({ prompt_per_million, completion_per_million, per_image }) =>
    `Set prices: ${money(prompt_per_million)} per million input tokens, ${money(completion_per_million)} per million output tokens, ${money(per_image)} per image`,
  'PUT /admin/v1/catalogue/*': ({ display_name }) => `Saved catalogue model: ${toText(display_name)}`,
  'DELETE /admin/v1/catalogue/*': () => 'Removed model from the catalogue',
  'POST /admin/v1/incidents': ({ title }) => `Published on the status page: “${toText(title)}”`,
  'PATCH /admin/v1/incidents/:id': () => 'Changed an incident',
  'POST /admin/v1/incidents/:id/updates': ({ status, message }) => `Updated an incident (${toText(status)}): “${toText(message)}”`,
  'PATCH /admin/v1/incidents/:id/updates/:update_id': () => 'Changed an update of an incident',
  'DELETE /admin/v1/incidents/:id': () => 'Removed an incident',
  'PUT /admin/v1/rollout-policy': ({ mode }) =>
    `Changed the rollout policy: new agent versions ${mode === 'immediate' ? 'to everyone at once' : 'in stages'}`,
  'POST /admin/v1/rollouts/:id/pause': () => 'Paused the rollout of an agent version',
  'POST /admin/v1/rollouts/:id/resume': () => 'Resumed the rollout of an agent version',
  'POST /admin/v1/rollouts/:id/halt': () => 'Halted the rollout of an agent version',
  'POST /admin/v1/rollouts/:id/advance': () => 'Started the next stage of the rollout of an agent version',
  'POST /admin/v1/rollouts/:id/complete': () => 'Offered an agent version to everyone',
  'POST /admin/v1/rollouts/:id/expedite': () => 'Made the rollout of an agent version urgent',
};

const WITHDRAWAL_ENDS: Readonly<Record<string, string>> = {
  paid: 'Marked withdrawal as paid',
  rejected: 'Rejected withdrawal',
  transfer: 'Transferred withdrawal through the payment service',
};

export function actionText({ action, details }: Pick<AdminAction, 'action' | 'details'>): string {
  const members = typeof details === 'object' && details !== null ? (details as Details) : {};
  return SENTENCES[action]?.(members) ?? action;
}

export function outcomeText(outcome: string | null): string {
  if (outcome === null) return 'not known';
  return outcome === 'done' ? 'done' : `failed: ${humanizeCode(outcome)}`;
}

function changesOfAccount({ suspended, is_admin }: Details): string {
  const changes = [
    ...(typeof suspended === 'boolean' ? [suspended ? 'Suspended account' : 'Unsuspended account'] : []),
    ...(typeof is_admin === 'boolean' ? [is_admin ? 'Granted operator access' : 'Revoked operator access'] : []),
  ];
  return changes.length === 0 ? 'No change to the account' : changes.join(', ');
}

function toText(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function money(value: unknown): string {
  return typeof value === 'number' && Number.isSafeInteger(value) ? formatUsd(value) : '?';
}
