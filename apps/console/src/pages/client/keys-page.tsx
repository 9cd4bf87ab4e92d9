/** `/keys`: create, edit and revoke API keys. The key itself is shown once, after creation. */
import './client.css';
import type { ConsoleKey, ConsoleNewKey } from '@inference/formats';
import { useQueryClient } from '@tanstack/react-query';
import { KeyRound, Plus } from 'lucide-react';
import { useState } from 'react';
import { api } from '../../api/api-client.js';
import { usePaginatedQuery } from '../../api/paginated-query.js';
import { MONEY_KEY } from '../../features/account/balance.js';
import { ConfirmDialog } from '../../ui/dialogs/confirm-dialog.js';
import { Card } from '../../ui/display/card.js';
import { LoadMore } from '../../ui/display/load-more.js';
import { PageHeader } from '../../ui/display/page-header.js';
import { Table } from '../../ui/display/table.js';
import { EmptyState } from '../../ui/feedback/empty-state.js';
import { ErrorState } from '../../ui/feedback/error-state.js';
import { useToast } from '../../ui/feedback/toast.js';
import { Button } from '../../ui/forms/button.js';
import { keyColumns } from './key-columns.js';
import { KeyDialog, NewKeyDialog } from './key-dialog.js';

const PAGE_ROWS = 50;

export function Page() {
  const queryClient = useQueryClient();
  const toast = useToast();
  const [editing, setEditing] = useState<ConsoleKey | 'new' | null>(null);
  const [revoking, setRevoking] = useState<ConsoleKey | null>(null);
  const [createdKey, setCreatedKey] = useState<ConsoleNewKey | null>(null);
  const list = usePaginatedQuery<ConsoleKey>([...MONEY_KEY, 'keys'], '/console/v1/keys', { limit: PAGE_ROWS });
  const invalidateKeys = (): Promise<void> => queryClient.invalidateQueries({ queryKey: MONEY_KEY });
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
      <PageHeader title="API keys" about="Programs authenticate with a key. Create one per program, with a spend limit." actions={create} />
      <Card flush>
        {list.error !== null && list.rows === undefined ? (
          <ErrorState error={list.error} what="The keys" onRetry={() => void list.refetch()} />
        ) : (
          <Table
            caption="API keys"
            columns={keyColumns({ onEdit: setEditing, onRevoke: setRevoking })}
            rows={list.rows}
            rowKey={({ id }) => id}
            stacked
            empty={
              <EmptyState icon={KeyRound} title="No keys yet">
                A key lets a program spend your balance. Create one to make your first request.
              </EmptyState>
            }
          />
        )}
        <LoadMore list={list} />
      </Card>
      <KeyDialog
        key={editing === null || editing === 'new' ? 'new' : editing.id}
        editing={editing}
        onClose={() => setEditing(null)}
        onDone={async (created) => {
          setEditing(null);
          if (created === null) toast.success('Key updated');
          else setCreatedKey(created);
          await invalidateKeys();
        }}
      />
      <NewKeyDialog created={createdKey} onClose={() => setCreatedKey(null)} />
      <ConfirmDialog
        open={revoking !== null}
        onOpenChange={(open) => (open ? undefined : setRevoking(null))}
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
