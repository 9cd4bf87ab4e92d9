/** `SessionsCard`: lists the sessions of the account. The user can sign out one session, or all except the current one. */
import type { ConsoleSession, ConsoleSessionList } from '@inference/formats';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api } from '../../api/api-client.js';
import { ConfirmDialog } from '../../ui/dialogs/dialog.js';
import { Time } from '../../ui/display/figures.js';
import { Badge, Card } from '../../ui/display/page.js';
import { type Column, Table } from '../../ui/display/table.js';
import { Loaded } from '../../ui/feedback/error-state.js';
import { useToast } from '../../ui/feedback/toast.js';
import { Button } from '../../ui/forms/button.js';
import { browserName } from './browser-name.js';

const SESSIONS_KEY = ['sessions'] as const;

export function SessionsCard() {
  const queryClient = useQueryClient();
  const toast = useToast();
  const [confirming, setConfirming] = useState(false);
  const sessions = useQuery({
    queryKey: SESSIONS_KEY,
    queryFn: async ({ signal }) => (await api.get<ConsoleSessionList>('/console/v1/sessions', { signal })).data,
  });
  const revoke = useMutation({
    mutationFn: async ({ id }: ConsoleSession) => {
      await api.delete(`/console/v1/sessions/${encodeURIComponent(id)}`);
      await queryClient.invalidateQueries({ queryKey: SESSIONS_KEY });
    },
    onSuccess: () => toast.success('Session signed out'),
    onError: (failure) => toast.failure('The session was not signed out', failure),
  });
  const revokeOthers = async (): Promise<void> => {
    await api.delete('/console/v1/sessions');
    await queryClient.invalidateQueries({ queryKey: SESSIONS_KEY });
    toast.success('All other sessions signed out');
  };
  const columns: Column<ConsoleSession>[] = [
    {
      key: 'browser',
      header: 'Browser',
      rowHeader: true,
      cell: ({ user_agent, current }) => (
        <span className="inline">
          <span title={user_agent ?? undefined}>{browserName(user_agent)}</span>{' '}
          {current ? <Badge tone="accent">Current session</Badge> : null}
        </span>
      ),
    },
    { key: 'address', header: 'IP address', cell: ({ address }) => address ?? 'unknown' },
    { key: 'since', header: 'Signed in', cell: ({ created_at }) => <Time at={created_at} /> },
    {
      key: 'end',
      header: <span className="visually-hidden">Sign out</span>,
      cell: (session) =>
        session.current ? null : (
          <Button size="small" busy={revoke.isPending && revoke.variables.id === session.id} onClick={() => revoke.mutate(session)}>
            Sign out
          </Button>
        ),
    },
  ];
  const others = (sessions.data ?? []).some(({ current }) => !current);
  return (
    <Card
      title="Sessions"
      flush
      actions={
        others ? (
          <Button size="small" onClick={() => setConfirming(true)}>
            Sign out of all other sessions
          </Button>
        ) : undefined
      }
    >
      <Loaded query={sessions} subject="Your sessions">
        <Table
          caption="List of sessions"
          columns={columns}
          rows={sessions.data}
          rowKey={({ id }) => id}
          empty={null}
          stacked
          loadingRows={1}
        />
      </Loaded>
      <ConfirmDialog
        open={confirming}
        onClose={() => setConfirming(false)}
        title="Sign out of all other sessions?"
        confirm="Sign out of all other sessions"
        onConfirm={revokeOthers}
      >
        <p>
          Other browsers must sign in again, with the second step even if you trusted them. Open playgrounds lose their key. API keys and
          passkeys keep working.
        </p>
      </ConfirmDialog>
    </Card>
  );
}
