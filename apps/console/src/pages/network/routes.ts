/** The public pages: what the network does, who serves in it, and how to check that. */
import { Activity } from 'lucide-react';
import type { PageRoute } from '../page-route.js';
import { PATHS } from '../paths.js';

export const networkRoutes: readonly PageRoute[] = [
  {
    path: PATHS.network,
    title: 'Network',
    access: 'public',
    load: () => import('./network-page.js'),
    nav: { section: 'network', label: 'Overview', icon: Activity },
  },
];
