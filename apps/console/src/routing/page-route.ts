/** Route metadata that the router and the navigation need before a page is loaded. */
import type { Permission } from '@inference/formats';
import type { LucideIcon } from 'lucide-react';
import type { ComponentType } from 'react';

/** Navigation sections, in order. */
export const SECTIONS = ['network', 'use', 'earn', 'admin'] as const;
export type Section = (typeof SECTIONS)[number];

export interface PageRoute {
  /** A value of `PATHS`. */
  readonly path: string;
  /** Document title. */
  readonly title: string;
  /** Required access. Visitors are redirected to sign-in; others see an error page about missing access. */
  readonly access: 'public' | 'account' | 'admin';
  /** Permission that the role in an organisation needs. Absent: every role may open the page. */
  readonly permission?: Permission;
  /** Loads the module of the page. Called when the page is opened, or its navigation link is hovered or focused. */
  readonly load: () => Promise<{ readonly Page: ComponentType }>;
  /** Entry in the navigation, if any. */
  readonly nav?: { readonly section: Section; readonly label: string; readonly icon: LucideIcon };
}
