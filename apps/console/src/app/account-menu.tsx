/** Menu of the signed-in account with sign-out, or links to sign in and sign up. */
import { Menu } from '@base-ui/react/menu';
import { useMutation } from '@tanstack/react-query';
import { CircleUser, LogOut } from 'lucide-react';
import { useRef } from 'react';
import { Link, useLocation } from 'wouter';
import { api } from '../api/api-client.js';
import { useRefreshSession, useSession } from '../api/session.js';
import { PATHS } from '../routing/paths.js';
import { Skeleton } from '../ui/feedback/placeholders.js';
import { useToast } from '../ui/feedback/toast.js';

/** `compact`: icon only, for the bar of narrow screens. */
export function AccountMenu({ compact = false }: { readonly compact?: boolean }) {
  const session = useSession();
  if (session.state === 'loading') return <Skeleton width={compact ? '4.75rem' : '100%'} height="2.5rem" />;
  if (session.state !== 'signed-in') {
    return (
      <div className="account-links">
        <Link href={PATHS.signIn} className="button" data-kind="secondary" data-size="small">
          Sign in
        </Link>
        {compact ? null : (
          <Link href={PATHS.signUp} className="button" data-kind="primary" data-size="small">
            Sign up
          </Link>
        )}
      </div>
    );
  }
  return <SignedIn name={session.me.name} email={session.me.email} compact={compact} />;
}

function SignedIn({ name, email, compact }: { readonly name: string; readonly email: string; readonly compact: boolean }) {
  const container = useRef<HTMLDivElement>(null);
  const [, navigate] = useLocation();
  const changed = useRefreshSession();
  const toast = useToast();
  const signOut = useMutation({
    mutationFn: async () => {
      // Open playgrounds end with the session. If this request fails, their keys expire within the hour.
      await api.delete('/console/v1/playground-key').catch(() => {});
      await api.post('/console/auth/sign-out');
      await changed();
      navigate(PATHS.home);
    },
    onError: (error) => toast.failure('You are still signed in', error),
  });
  return (
    <div ref={container}>
      <Menu.Root>
        <Menu.Trigger className={compact ? 'icon-button' : 'account-trigger'} aria-label={compact ? `Account of ${name}` : undefined}>
          <CircleUser size={20} aria-hidden="true" />
          {compact ? null : <span className="account-name">{name}</span>}
        </Menu.Trigger>
        {/* Portal inside the landmark of the button, for users who navigate by landmarks. */}
        <Menu.Portal container={container}>
          <Menu.Positioner className="menu-positioner" positionMethod="fixed" sideOffset={6} align="end">
            <Menu.Popup className="menu">
              <Menu.Group>
                <Menu.GroupLabel className="menu-about">
                  <strong>{name}</strong>
                  <span>{email}</span>
                </Menu.GroupLabel>
                <Menu.Item className="menu-item" disabled={signOut.isPending} onClick={() => signOut.mutate()}>
                  <LogOut size={16} aria-hidden="true" /> Sign out
                </Menu.Item>
              </Menu.Group>
            </Menu.Popup>
          </Menu.Positioner>
        </Menu.Portal>
      </Menu.Root>
    </div>
  );
}
