/** Where the account is signed in, and how to end that, one by one or everywhere else at once. */
import type { ConsoleSession, ConsoleSessionList } from '@inference/formats';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api } from '../../api/api-client.js';
import { ConfirmDialog } from '../../ui/dialogs/confirm-dialog.js';
import { Badge } from '../../ui/display/badge.js';
import { Card } from '../../ui/display/card.js';
import { type Column, Table } from '../../ui/display/table.js';
import { Time } from '../../ui/display/time.js';
import { ErrorState } from '../../ui/feedback/error-state.js';
import { useToast } from '../../ui/feedback/toast.js';
import { Button } from '../../ui/forms/button.js';
import { browserName } from './browser-name.js';

const KEY = ['sessions'] as const;

export function SessionsCard() {
  const queryClient = useQueryClient();
  const toast = useToast();
  const [confirming, setConfirming] = useState(false);
  const { data, error, refetch } = useQuery({
    queryKey: KEY,
    queryFn: async ({ signal }) => (await api.get<ConsoleSessionList>('/console/v1/sessions', { signal })).data,
  });
  const end = async (session: ConsoleSession): Promise<void> => {
    try {
      await api.delete(`/console/v1/sessions/${encodeURIComponent(session.id)}`);
      await queryClient.invalidateQueries({ queryKey: KEY });
      toast.success('Signed out there');
    } catch (failure) {
      toast.failure('That place is still signed in', failure);
    }
  };
  const endOthers = async (): Promise<void> => {
    await api.delete('/console/v1/sessions');
    await queryClient.invalidateQueries({ queryKey: KEY });
    toast.success('Signed out everywhere else');
  };
  const columns: Column<ConsoleSession>[] = [
    {
      key: 'place',
      header: 'Place',
      rowHeader: true,
      cell: ({ user_agent, current }) => (
        <span className="inline">
          <span title={user_agent ?? undefined}>{browserName(user_agent)}</span> {current ? <Badge tone="accent">This one</Badge> : null}
        </span>
      ),
    },
    { key: 'address', header: 'Address', cell: ({ address }) => address ?? 'unknown' },
    { key: 'since', header: 'Since', cell: ({ created_at }) => <Time at={created_at} /> },
    {
      key: 'end',
      header: <span className="visually-hidden">Sign out</span>,
      cell: (session) =>
        session.current ? null : (
          <Button size="small" onClick={() => void end(session)}>
            Sign out
          </Button>
        ),
    },
  ];
  const others = (data ?? []).some(({ current }) => !current);
  return (
    <Card
      title="Where you are signed in"
      flush
      actions={
        others ? (
          <Button size="small" onClick={() => setConfirming(true)}>
            Sign out everywhere else
          </Button>
        ) : undefined
      }
    >
      {error === null ? (
        <Table caption="Sessions" columns={columns} rows={data} rowKey={({ id }) => id} empty={null} stacked loadingRows={1} />
      ) : (
        <ErrorState error={error} what="Your sessions" onRetry={() => void refetch()} />
      )}
      <ConfirmDialog
        open={confirming}
        onOpenChange={setConfirming}
        title="Sign out everywhere else?"
        confirm="Sign out everywhere else"
        onConfirm={endOthers}
      >
        <p>Every other place has to sign in again, and keys of open playgrounds end. API keys that you made go on.</p>
      </ConfirmDialog>
    </Card>
  );
}
