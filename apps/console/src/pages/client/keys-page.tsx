/** `/keys`: create, edit and revoke API keys. The secret is shown once, after creation. */
import './client.css';
import type { BudgetPeriod, ConsoleKey, ConsoleNewKey } from '@inference/formats';
import { useQueryClient } from '@tanstack/react-query';
import { KeyRound, Plus } from 'lucide-react';
import { useState } from 'react';
import { api } from '../../api/api-client.js';
import { usePaginatedQuery } from '../../api/paginated-query.js';
import { useActiveAccount, usePermission } from '../../api/session.js';
import { BILLING_QUERY_KEY } from '../../features/account/balance.js';
import { ConfirmDialog } from '../../ui/dialogs/dialog.js';
import { Money, Time } from '../../ui/display/figures.js';
import { Badge, PageHeader } from '../../ui/display/page.js';
import { type Column, TableCard } from '../../ui/display/table.js';
import type { Tone } from '../../ui/feedback/note.js';
import { EmptyState } from '../../ui/feedback/placeholders.js';
import { useToast } from '../../ui/feedback/toast.js';
import { Button } from '../../ui/forms/button.js';
import { KeyDialog, NewKeyDialog } from './key-dialog.js';

const PAGE_ROWS = 50;

export function Page() {
  const { organisation } = useActiveAccount();
  const canWrite = usePermission('keys.write');
  const queryClient = useQueryClient();
  const toast = useToast();
  const [editing, setEditing] = useState<ConsoleKey | 'new' | null>(null);
  const [revoking, setRevoking] = useState<ConsoleKey | null>(null);
  const [createdKey, setCreatedKey] = useState<ConsoleNewKey | null>(null);
  const list = usePaginatedQuery<ConsoleKey>([...BILLING_QUERY_KEY, 'keys'], '/console/v1/keys', { limit: PAGE_ROWS });
  const invalidateKeys = (): Promise<void> => queryClient.invalidateQueries({ queryKey: BILLING_QUERY_KEY });
  const revoke = async (key: ConsoleKey): Promise<void> => {
    await api.delete(`/console/v1/keys/${encodeURIComponent(key.id)}`);
    await invalidateKeys();
    toast.success(`${key.name} revoked`);
  };
  const create = (
    <Button kind="primary" icon={<Plus size={18} aria-hidden="true" />} onClick={() => setEditing('new')}>
      Create key
    </Button>
  );
  return (
    <>
      <PageHeader
        title="API keys"
        about="Programs authenticate with a key. Create one per program, with a spend limit or a budget."
        actions={canWrite ? create : undefined}
      />
      <TableCard
        subject="The keys"
        list={list}
        caption="API keys"
        columns={keyColumns({ onEdit: setEditing, onRevoke: setRevoking }, { canWrite, isShared: organisation !== null })}
        rowKey={({ id }) => id}
        stacked
        empty={
          <EmptyState icon={KeyRound} title="No keys yet">
            A key lets a program spend your balance. Create one to make your first request.
          </EmptyState>
        }
      />
      {editing === null ? null : (
        <KeyDialog
          editing={editing}
          onClose={() => setEditing(null)}
          onDone={async (created) => {
            setEditing(null);
            if (created === null) toast.success('Key updated');
            else setCreatedKey(created);
            await invalidateKeys();
          }}
        />
      )}
      <NewKeyDialog created={createdKey} onClose={() => setCreatedKey(null)} />
      <ConfirmDialog
        open={revoking !== null}
        onClose={() => setRevoking(null)}
        title={`Revoke ${revoking?.name ?? 'the key'}?`}
        confirm="Revoke key"
        onConfirm={async () => {
          if (revoking !== null) await revoke(revoking);
        }}
      >
        <p>Requests with this key are refused immediately. This cannot be undone.</p>
      </ConfirmDialog>
    </>
  );
}

const STATES: Readonly<Record<ConsoleKey['state'], readonly [Tone, string]>> = {
  active: ['good', 'Active'],
  expired: ['warn', 'Expired'],
  revoked: ['neutral', 'Revoked'],
};

interface KeyActions {
  readonly onEdit: (key: ConsoleKey) => void;
  readonly onRevoke: (key: ConsoleKey) => void;
}

/** `isShared`: whether the keys belong to an organisation. The table then shows who created each key. */
function keyColumns(
  actions: KeyActions,
  { canWrite, isShared }: { readonly canWrite: boolean; readonly isShared: boolean },
): Column<ConsoleKey>[] {
  const createdBy: Column<ConsoleKey> = {
    key: 'created_by',
    header: 'Created by',
    cell: ({ created_by }) => created_by?.name ?? 'Unknown',
  };
  return [
    {
      key: 'name',
      header: 'Name',
      rowHeader: true,
      cell: ({ name, prefix, signature_form }) => (
        <span className="key-name">
          <span className="breakable">{name}</span>
          <code>{`${prefix}…`}</code>
          {signature_form === 'comment' ? <span className="muted">Stream signature as a comment</span> : null}
        </span>
      ),
    },
    {
      key: 'state',
      header: 'State',
      cell: ({ state }) => <Badge tone={STATES[state][0]}>{STATES[state][1]}</Badge>,
    },
    ...(isShared ? [createdBy] : []),
    {
      key: 'spent',
      header: 'Spent',
      numeric: true,
      cell: ({ spent_micro_usd, spend_limit_micro_usd }) => (
        <span>
          <Money microUsd={spent_micro_usd} />
          {spend_limit_micro_usd === null ? null : (
            <span className="muted">
              {' of '}
              <Money microUsd={spend_limit_micro_usd} />
            </span>
          )}
        </span>
      ),
    },
    { key: 'budget', header: 'Budget', cell: (key) => <BudgetUse budgeted={key} /> },
    {
      key: 'models',
      header: 'Models',
      cell: ({ models }) => (models === null ? 'All' : models.length === 1 ? <code>{models[0]}</code> : `${models.length} models`),
    },
    { key: 'used', header: 'Last used', cell: ({ last_used_at }) => (last_used_at === null ? 'Never' : <Time at={last_used_at} />) },
    { key: 'expires', header: 'Expires', cell: ({ expires_at }) => (expires_at === null ? 'Never' : <Time at={expires_at} as="date" />) },
    {
      key: 'actions',
      header: <span className="visually-hidden">Actions</span>,
      cell: (key) =>
        key.state === 'revoked' || !canWrite ? null : (
          <span className="row-actions">
            <Button size="small" aria-label={`Edit ${key.name}`} onClick={() => actions.onEdit(key)}>
              Edit
            </Button>
            <Button size="small" aria-label={`Revoke ${key.name}`} onClick={() => actions.onRevoke(key)}>
              Revoke
            </Button>
          </span>
        ),
    },
  ];
}

const PERIODS: Readonly<Record<BudgetPeriod, string>> = { day: 'today', week: 'this week', month: 'this month' };

function BudgetUse({ budgeted }: { readonly budgeted: ConsoleKey }) {
  const { name, budget_micro_usd: budget, budget_period: period, budget_spent_micro_usd: spent, budget_resets_at: resetsAt } = budgeted;
  if (budget === null || period === null || spent === null || resetsAt === null) return 'None';
  return (
    <span className="budget-use">
      <span>
        <Money microUsd={spent} />
        <span className="muted">
          {' of '}
          <Money microUsd={budget} /> {PERIODS[period]}
        </span>
      </span>
      <progress aria-label={`Budget of ${name} spent`} max={budget} value={Math.min(spent, budget)} />
      <span className="muted">
        Resets <Time at={resetsAt} as="date" />
      </span>
    </span>
  );
}
