/** Frame of every page: navigation, account menu, theme. A sidebar on wide screens, a drawer on narrow ones. */
import { Dialog } from '@base-ui/react/dialog';
import { Menu as MenuIcon, X } from 'lucide-react';
import { type ReactNode, useEffect, useState } from 'react';
import { Link, useLocation } from 'wouter';
import { type Session, useSession } from '../api/session.js';
import { PAGES } from '../pages/pages.js';
import { type PageRoute, SECTIONS, type Section } from '../routing/page-route.js';
import { PATHS } from '../routing/paths.js';
import { Note } from '../ui/feedback/note.js';
import { ThemeSwitch } from '../ui/theme/theme-switch.js';
import { AccountMenu } from './account-menu.js';

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
          <Drawer />
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
      <main id="main" className="shell-main" tabIndex={-1}>
        <SuspendedNote />
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
        Its keys and sessions are disabled until an operator of this coordinator reinstates it. Contact the operator.
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

function Navigation({ label }: { readonly label: string }) {
  const session = useSession();
  const [location] = useLocation();
  return (
    <nav aria-label={label} className="nav">
      {navigationFor(session).map((section) => (
        <div key={section.section} className="nav-section">
          <h2 className="nav-heading">{section.label}</h2>
          <ul>
            {section.pages.map(({ path, nav, load }) => {
              const Icon = nav.icon;
              const preload = (): void => void load().catch(() => {});
              return (
                <li key={path}>
                  <Link
                    href={path}
                    className="nav-link"
                    aria-current={isCurrent(path, location) ? 'page' : undefined}
                    onPointerEnter={preload}
                    onFocus={preload}
                  >
                    <Icon size={18} strokeWidth={1.75} aria-hidden="true" />
                    {nav.label}
                  </Link>
                </li>
              );
            })}
          </ul>
        </div>
      ))}
    </nav>
  );
}

function Drawer() {
  const [open, setOpen] = useState(false);
  const [location] = useLocation();
  // biome-ignore lint/correctness/useExhaustiveDependencies: every navigation closes the drawer
  useEffect(() => setOpen(false), [location]);
  return (
    <Dialog.Root open={open} onOpenChange={setOpen}>
      <Dialog.Trigger className="icon-button" aria-label="Open the menu">
        <MenuIcon size={22} aria-hidden="true" />
      </Dialog.Trigger>
      <Dialog.Portal>
        <Dialog.Backdrop className="backdrop" />
        <Dialog.Popup className="drawer">
          <div className="drawer-head">
            <Dialog.Title className="drawer-title">Menu</Dialog.Title>
            <Dialog.Close className="icon-button" aria-label="Close the menu">
              <X size={22} aria-hidden="true" />
            </Dialog.Close>
          </div>
          <Navigation label="Menu" />
          <ThemeSwitch />
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  );
}

interface NavSection {
  readonly section: Section;
  readonly label: string;
  readonly pages: readonly (PageRoute & { readonly nav: NonNullable<PageRoute['nav']> })[];
}

const LABELS: Readonly<Record<Section, string>> = { network: 'Network', use: 'Use', earn: 'Earn', admin: 'Admin' };

/** Sections with at least one page. Visitors see account pages too, which redirect to sign-in; only operators see admin pages. */
function navigationFor(session: Session): NavSection[] {
  const isAdmin = session.state === 'signed-in' && session.me.is_admin;
  return SECTIONS.map((section) => ({
    section,
    label: LABELS[section],
    pages: PAGES.flatMap((page) =>
      page.nav?.section === section && (page.access !== 'admin' || isAdmin) ? [{ ...page, nav: page.nav }] : [],
    ),
  })).filter(({ pages }) => pages.length > 0);
}

/** Whether the navigation marks `path` at this location. */
function isCurrent(path: string, location: string): boolean {
  return location === path || location.startsWith(`${path}/`);
}
