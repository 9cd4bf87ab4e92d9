/** `/invitation?token=`: shows an invitation to an organisation. The recipient must sign in with the invited email address to accept. */
import './invitation.css';
import type { ConsoleInvitationView, ConsoleMembership } from '@inference/formats';
import { useMutation, useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { useLocation, useSearch } from 'wouter';
import { api } from '../../api/api-client.js';
import { ApiError } from '../../api/api-error.js';
import { useRefreshSession, useSession, useSwitchAccount } from '../../api/session.js';
import { ROLE_DESCRIPTIONS, ROLE_LABELS } from '../../features/account/roles.js';
import { PATHS } from '../../routing/paths.js';
import { Time } from '../../ui/display/figures.js';
import { ErrorNote, ErrorState } from '../../ui/feedback/error-state.js';
import { Note } from '../../ui/feedback/note.js';
import { EmptyState, PageSkeleton } from '../../ui/feedback/placeholders.js';
import { useToast } from '../../ui/feedback/toast.js';
import { Button, LinkButton } from '../../ui/forms/button.js';

export function Page() {
  const session = useSession();
  const token = new URLSearchParams(useSearch()).get('token') ?? '';
  if (session.state === 'loading') return <PageSkeleton />;
  if (session.state === 'failed') return <ErrorState level={1} error={session.error} onRetry={session.retry} />;
  if (session.state === 'signed-in') return <Invitation token={token} me={session.me} />;
  const next = `next=${encodeURIComponent(`${PATHS.invitation}?token=${token}`)}`;
  return (
    <InvitationCard title="Join an organisation">
      <p>You have been invited to an organisation. Continue with the email address that received the invitation.</p>
      <div className="row">
        <LinkButton href={`${PATHS.signIn}?${next}`}>Sign in</LinkButton>
        <LinkButton href={`${PATHS.signUp}?${next}`} kind="secondary">
          Create an account
        </LinkButton>
      </div>
    </InvitationCard>
  );
}

function InvitationCard({ title, children }: { readonly title: string; readonly children: ReactNode }) {
  return (
    <div className="invitation">
      <h1 tabIndex={-1}>{title}</h1>
      <div className="card">
        <div className="card-body stack-small">{children}</div>
      </div>
    </div>
  );
}

function Invitation({ token, me }: { readonly token: string; readonly me: { readonly id: string; readonly email: string } }) {
  const [, navigate] = useLocation();
  const { data, error, refetch } = useQuery({
    queryKey: ['invitation', me.id, token],
    queryFn: ({ signal }) => api.post<ConsoleInvitationView>('/console/v1/invitations/view', { token }, { signal }),
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (error instanceof ApiError && (error.status === 404 || error.status === 400)) {
    return (
      <EmptyState level={1} title="Invitation not found" action={<LinkButton href={PATHS.organisation}>Your organisations</LinkButton>}>
        It has expired, was revoked, or was accepted before. Ask for a new one.
      </EmptyState>
    );
  }
  if (data === undefined) {
    return error === null ? (
      <PageSkeleton />
    ) : (
      <ErrorState level={1} subject="The invitation" error={error} onRetry={() => void refetch()} />
    );
  }
  return (
    <InvitationCard title={`Join ${data.organisation_name}`}>
      <p>
        {data.invited_by === null ? 'You are invited' : `${data.invited_by} invites you`} as <strong>{ROLE_LABELS[data.role]}</strong>:{' '}
        {ROLE_DESCRIPTIONS[data.role]}
      </p>
      <p className="muted">
        Sent to {data.email}, valid until <Time at={data.expires_at} as="date" />.
      </p>
      {data.is_recipient ? <AcceptButton token={token} onDone={() => navigate(PATHS.organisation)} /> : <OtherRecipient email={me.email} />}
    </InvitationCard>
  );
}

function AcceptButton({ token, onDone }: { readonly token: string; readonly onDone: () => void }) {
  const refreshSession = useRefreshSession();
  const switchAccount = useSwitchAccount();
  const toast = useToast();
  const { mutate, isPending, error } = useMutation({
    mutationFn: async () => {
      const { id, name } = await api.post<ConsoleMembership>('/console/v1/invitations/accept', { token });
      onDone();
      await refreshSession();
      switchAccount(id);
      toast.success(`You joined ${name}`, 'This tab now shows the organisation.');
    },
  });
  return (
    <>
      <ErrorNote error={error} />
      <div>
        <Button kind="primary" busy={isPending} onClick={() => mutate()}>
          Accept invitation
        </Button>
      </div>
    </>
  );
}

function OtherRecipient({ email }: { readonly email: string }) {
  return (
    <Note tone="warn" title="This invitation is for another email address.">
      <p>You are signed in as {email}. Sign out, then open the link again and continue with the invited address.</p>
    </Note>
  );
}
