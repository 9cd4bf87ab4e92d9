/** `Shell`: frame of every page with navigation, account menu and theme switch. Wide screens have a sidebar, narrow screens a drawer. */

import type { NetworkStatus } from '@inference/formats';
import { useQuery } from '@tanstack/react-query';
import { RotateCw } from 'lucide-react';
import { lazy, type ReactNode, Suspense } from 'react';
import { Link, useLocation } from 'wouter';
import { useActiveAccountState } from '../api/active-account.js';
import { api } from '../api/api-client.js';
import { useSession } from '../api/session.js';
import { PATHS } from '../routing/paths.js';
import { Note } from '../ui/feedback/note.js';
import { ThemeSwitch } from '../ui/theme/theme-switch.js';
import { AccountMenu } from './account-menu.js';
import { Navigation } from './navigation.js';

export function Shell({ children }: { readonly children: ReactNode }) {
  return (
    <div className="shell">
      <a className="skip-link" href="#main">
        Skip to the content
      </a>
      <header className="shell-bar">
        <Brand />
        <div className="shell-bar-end">
          <AccountMenu compact />
          <Suspense fallback={<span className="icon-button" aria-hidden="true" />}>
            <Drawer />
          </Suspense>
        </div>
      </header>
      <aside className="shell-side">
        <Brand />
        <Navigation label="Main" />
        <div className="shell-side-end">
          <ThemeSwitch />
          <AccountMenu />
        </div>
      </aside>
      <OpenIncidents />
      <main id="main" className="shell-main" tabIndex={-1}>
        <SuspendedNote />
        <LostAccessNote />
        {children}
      </main>
    </div>
  );
}

function SuspendedNote() {
  const session = useSession();
  if (session.state !== 'signed-out' || !session.suspended) return null;
  return (
    <div className="shell-note">
      <Note tone="bad" title="This account is suspended">
        Its keys and sessions are disabled until an operator of this coordinator unsuspends it. Contact the operator.
      </Note>
    </div>
  );
}

function LostAccessNote() {
  const { hasLostAccess } = useActiveAccountState();
  if (!hasLostAccess) return null;
  return (
    <div className="shell-note" role="status">
      <Note tone="warn" title="You no longer have access to this organisation">
        You were removed, or the organisation was suspended or deleted. This tab now shows your personal account.
      </Note>
    </div>
  );
}

function Brand() {
  return (
    <Link href={PATHS.home} className="brand">
      <svg viewBox="0 0 32 32" width="26" height="26" aria-hidden="true">
        <rect width="32" height="32" rx="8" className="brand-background" />
        <path d="M9 21.5 16 9l7 12.5" className="brand-lines" />
        <circle cx="9" cy="21.5" r="3" />
        <circle cx="16" cy="9" r="3" />
        <circle cx="23" cy="21.5" r="3" />
      </svg>
      <span>Inference network</span>
    </Link>
  );
}

const Drawer = lazy(() =>
  import('./drawer.js').then(
    ({ Drawer: Loaded }) => ({ default: Loaded }),
    () => ({ default: ReloadButton }),
  ),
);

/** Replaces the drawer if the drawer's module cannot be loaded: offline, or after a deployment. */
function ReloadButton() {
  return (
    <button type="button" className="icon-button" aria-label="Reload the page" onClick={() => window.location.reload()}>
      <RotateCw size={22} aria-hidden="true" />
    </button>
  );
}

const REFRESH_MS = 120_000;

/** Shows the incident banner on every page except the status page, while a major or critical incident is open. */
function OpenIncidents() {
  const [location] = useLocation();
  const { data } = useQuery({
    queryKey: ['public', 'open-incidents'],
    // Without days and models, the response is small.
    queryFn: ({ signal }) => api.get<NetworkStatus>('/v1/network/status', { query: { days: 0, limit: 0 }, signal }),
    staleTime: REFRESH_MS,
    refetchInterval: REFRESH_MS,
    retry: false,
  });
  const severe = data?.open_incidents.filter(({ impact }) => impact === 'major' || impact === 'critical') ?? [];
  if (severe.length === 0 || location === PATHS.status) return null;
  return (
    <Suspense fallback={null}>
      <IncidentBanner incidents={severe} />
    </Suspense>
  );
}

const IncidentBanner = lazy(() =>
  import('./incident-banner.js').then(
    ({ IncidentBanner: Loaded }) => ({ default: Loaded }),
    () => ({ default: () => null }),
  ),
);
