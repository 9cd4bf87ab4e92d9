/** API keys: made, limited, revoked. A key's text is shown once, when it is made. */
import './client.css';
import type { ConsoleKey, ConsoleKeyPage, ConsoleNewKey } from '@inference/formats';
import { useInfiniteQuery, useQueryClient } from '@tanstack/react-query';
import { KeyRound, Plus } from 'lucide-react';
import { useState } from 'react';
import { api } from '../../api/api-client.js';
import { MONEY } from '../../features/account/balance.js';
import { ConfirmDialog } from '../../ui/dialogs/confirm-dialog.js';
import { Card } from '../../ui/display/card.js';
import { PageHeader } from '../../ui/display/page-header.js';
import { Table } from '../../ui/display/table.js';
import { EmptyState } from '../../ui/feedback/empty-state.js';
import { ErrorState } from '../../ui/feedback/error-state.js';
import { useToast } from '../../ui/feedback/toast.js';
import { Button } from '../../ui/forms/button.js';
import { keyColumns } from './key-columns.js';
import { KeyDialog } from './key-dialog.js';
import { MoreButton } from './more-button.js';
import { NewKeyDialog } from './new-key-dialog.js';

const PAGE = 50;

export function Page() {
  const queryClient = useQueryClient();
  const toast = useToast();
  const [editing, setEditing] = useState<ConsoleKey | 'new' | null>(null);
  const [revoking, setRevoking] = useState<ConsoleKey | null>(null);
  const [made, setMade] = useState<ConsoleNewKey | null>(null);
  const { data, error, refetch, hasNextPage, isFetchingNextPage, fetchNextPage } = useInfiniteQuery({
    queryKey: [...MONEY, 'keys'],
    queryFn: ({ pageParam, signal }) => api.get<ConsoleKeyPage>('/console/v1/keys', { query: { limit: PAGE, cursor: pageParam }, signal }),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor,
  });
  const keys = data?.pages.flatMap((page) => page.data);
  const renew = (): Promise<void> => queryClient.invalidateQueries({ queryKey: MONEY });
  const revoke = async (key: ConsoleKey): Promise<void> => {
    await api.delete(`/console/v1/keys/${encodeURIComponent(key.id)}`);
    await renew();
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
        {error !== null && data === undefined ? (
          <ErrorState error={error} what="The keys" onRetry={() => void refetch()} />
        ) : (
          <Table
            caption="API keys"
            columns={keyColumns({ onEdit: setEditing, onRevoke: setRevoking })}
            rows={keys}
            rowKey={({ id }) => id}
            stacked
            empty={
              <EmptyState icon={KeyRound} title="No keys yet">
                A key lets a program spend your balance. Create one to make your first request.
              </EmptyState>
            }
          />
        )}
        <MoreButton more={hasNextPage} busy={isFetchingNextPage} onMore={() => void fetchNextPage()} />
      </Card>
      <KeyDialog
        key={editing === null || editing === 'new' ? 'new' : editing.id}
        editing={editing}
        onClose={() => setEditing(null)}
        onDone={async (created) => {
          setEditing(null);
          if (created === null) toast.success('Key updated');
          else setMade(created);
          await renew();
        }}
      />
      <NewKeyDialog made={made} onClose={() => setMade(null)} />
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
