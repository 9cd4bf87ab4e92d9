/** Pages for owners: machines, earnings, linking. */
import { Coins, Computer, Link2 } from 'lucide-react';
import type { PageRoute } from '../../routing/page-route.js';
import { PATHS } from '../../routing/paths.js';

export const ownerRoutes: readonly PageRoute[] = [
  {
    path: PATHS.machines,
    title: 'Machines',
    access: 'account',
    load: () => import('./machines-page.js'),
    nav: { section: 'earn', label: 'Machines', icon: Computer },
  },
  {
    path: PATHS.machine,
    title: 'Machine',
    access: 'account',
    load: () => import('./machine-page.js'),
  },
  {
    path: PATHS.earnings,
    title: 'Earnings',
    access: 'account',
    load: () => import('./earnings-page.js'),
    nav: { section: 'earn', label: 'Earnings', icon: Coins },
  },
  {
    path: PATHS.link,
    title: 'Link a machine',
    access: 'account',
    load: () => import('./link-page.js'),
    nav: { section: 'earn', label: 'Link a machine', icon: Link2 },
  },
];
