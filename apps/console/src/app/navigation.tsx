/** `Navigation`: links to the pages of the console, by section. Used by the sidebar and by the drawer of narrow screens. */
import { Link, useLocation } from 'wouter';
import { type Session, useSession } from '../api/session.js';
import { PAGES } from '../pages/pages.js';
import { type PageRoute, SECTIONS, type Section } from '../routing/page-route.js';

export function Navigation({ label }: { readonly label: string }) {
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

interface NavSection {
  readonly section: Section;
  readonly label: string;
  readonly pages: readonly (PageRoute & { readonly nav: NonNullable<PageRoute['nav']> })[];
}

const SECTION_LABELS: Readonly<Record<Section, string>> = { network: 'Network', use: 'Use', earn: 'Earn', admin: 'Admin' };

/** Sections with at least one page. Visitors also see account pages, which redirect to sign-in; only operators see admin pages. */
function navigationFor(session: Session): NavSection[] {
  const isAdmin = session.state === 'signed-in' && session.me.is_admin;
  return SECTIONS.map((section) => ({
    section,
    label: SECTION_LABELS[section],
    pages: PAGES.flatMap((page) =>
      page.nav?.section === section && (page.access !== 'admin' || isAdmin) ? [{ ...page, nav: page.nav }] : [],
    ),
  })).filter(({ pages }) => pages.length > 0);
}

/** Whether the open page is at or below `path`. */
function isCurrent(path: string, location: string): boolean {
  return location === path || location.startsWith(`${path}/`);
}
