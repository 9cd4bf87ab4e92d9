/** What the router and the navigation know of a page before it is loaded. */
import type { LucideIcon } from 'lucide-react';
import type { ComponentType } from 'react';

/** Groups of the navigation, in their order. */
export const SECTIONS = ['network', 'use', 'earn', 'admin'] as const;
export type Section = (typeof SECTIONS)[number];

export interface PageRoute {
  /** One of `PATHS`. */
  readonly path: string;
  /** Shown as the document's title. */
  readonly title: string;
  /** Who may open it. Others are asked to sign in, or told that it is not theirs. */
  readonly access: 'public' | 'account' | 'admin';
  /** The module is fetched when the page is first opened, or when its link is pointed at. */
  readonly load: () => Promise<{ readonly Page: ComponentType }>;
  /** Where it stands in the navigation; absent: nowhere. */
  readonly nav?: { readonly section: Section; readonly label: string; readonly icon: LucideIcon };
}
