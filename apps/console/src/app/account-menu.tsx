/** `AccountMenu`: menu of the active account with sign-out, or links to sign in and sign up. */
import type { ConsoleMe } from '@inference/formats';
import { Building2, CircleUser, LogOut } from 'lucide-react';
import { lazy, type ReactNode, Suspense } from 'react';
import { Link } from 'wouter';
import { useOrganisationOf, useSession } from '../api/session.js';
import { PATHS } from '../routing/paths.js';
import { Skeleton } from '../ui/feedback/placeholders.js';
import { useSignOut } from './sign-out.js';

/** `compact`: icon only, for the bar of narrow screens. */
export function AccountMenu({ compact = false }: { readonly compact?: boolean }) {
  const session = useSession();
  if (session.state === 'loading') return <AccountSkeleton compact={compact} />;
  if (session.state !== 'signed-in') {
    return (
      <div className="account-links">
        <Link href={PATHS.signIn} className="button" data-kind="secondary" data-size="small">
          Sign in
        </Link>
        {/* If the session could not be read, the browser may still have one. */}
        {session.state === 'failed' ? <SignOutButton /> : null}
        {compact || session.state === 'failed' ? null : (
          <Link href={PATHS.signUp} className="button" data-kind="primary" data-size="small">
            Sign up
          </Link>
        )}
      </div>
    );
  }
  return <ActiveAccountMenu me={session.me} compact={compact} />;
}

function ActiveAccountMenu({ me, compact }: { readonly me: ConsoleMe; readonly compact: boolean }) {
  const organisation = useOrganisationOf(me);
  const name = organisation?.name ?? me.name;
  const Icon = organisation === null ? CircleUser : Building2;
  return (
    <Suspense fallback={<AccountSkeleton compact={compact} />}>
      <SignedInMenu me={me} name={name} compact={compact}>
        <Icon size={20} aria-hidden="true" />
        {compact && organisation === null ? null : <span className="account-name">{name}</span>}
      </SignedInMenu>
    </Suspense>
  );
}

function AccountSkeleton({ compact }: { readonly compact: boolean }) {
  return <Skeleton width={compact ? '4.75rem' : '100%'} height="2.5rem" />;
}

const SignedInMenu = lazy(() =>
  import('./signed-in-menu.js').then(
    ({ SignedInMenu: Loaded }) => ({ default: Loaded }),
    // The module cannot be loaded offline, or after a deployment. Account page and sign-out stay available.
    () => ({ default: AccountLinks }),
  ),
);

function AccountLinks({ name, compact, children }: { readonly name: string; readonly compact: boolean; readonly children: ReactNode }) {
  return (
    <div className="account-links">
      <Link
        href={PATHS.account}
        className={compact ? 'icon-button account-compact' : 'account-trigger'}
        aria-label={compact ? `Account of ${name}` : undefined}
      >
        {children}
      </Link>
      <SignOutButton />
    </div>
  );
}

function SignOutButton() {
  const { mutate, isPending } = useSignOut();
  return (
    <button type="button" className="icon-button" aria-label="Sign out" title="Sign out" disabled={isPending} onClick={() => mutate()}>
      <LogOut size={18} aria-hidden="true" />
    </button>
  );
}
