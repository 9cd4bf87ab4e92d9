/** What the navigation shows to whom. */

import type { Session } from '../api/session.js';
import { PAGES } from '../pages/pages.js';
import { type PageRoute, SECTIONS, type Section } from '../routing/page-route.js';

export interface NavSection {
  readonly section: Section;
  readonly label: string;
  readonly pages: readonly (PageRoute & { readonly nav: NonNullable<PageRoute['nav']> })[];
}

const LABELS: Readonly<Record<Section, string>> = { network: 'Network', use: 'Use', earn: 'Earn', admin: 'Admin' };

/** Sections with at least one page. Pages that need an account are shown to everybody but operators' pages, which ask to sign in. */
export function navigationFor(session: Session): NavSection[] {
  const isAdmin = session.state === 'signed-in' && session.me.is_admin;
  return SECTIONS.map((section) => ({
    section,
    label: LABELS[section],
    pages: PAGES.flatMap((page) =>
      page.nav?.section === section && (page.access !== 'admin' || isAdmin) ? [{ ...page, nav: page.nav }] : [],
    ),
  })).filter(({ pages }) => pages.length > 0);
}

/** Whether the navigation marks this page while the console shows that address. */
export function isCurrent(path: string, location: string): boolean {
  return path === '/' ? location === '/' : location === path || location.startsWith(`${path}/`);
}
