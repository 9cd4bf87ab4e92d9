/** Pages for API clients: keys, usage and balance. */
import { ChartColumn, KeyRound, Rocket, Wallet } from 'lucide-react';
import type { PageRoute } from '../../routing/page-route.js';
import { PATHS } from '../../routing/paths.js';

export const clientRoutes: readonly PageRoute[] = [
  {
    path: PATHS.quickStart,
    title: 'Quick start',
    access: 'account',
    load: () => import('./quick-start-page.js'),
    nav: { section: 'use', label: 'Quick start', icon: Rocket },
  },
  {
    path: PATHS.keys,
    title: 'API keys',
    access: 'account',
    load: () => import('./keys-page.js'),
    nav: { section: 'use', label: 'API keys', icon: KeyRound },
  },
  {
    path: PATHS.usage,
    title: 'Usage',
    access: 'account',
    load: () => import('./usage-page.js'),
    nav: { section: 'use', label: 'Usage', icon: ChartColumn },
  },
  {
    path: PATHS.balance,
    title: 'Balance',
    access: 'account',
    load: () => import('./balance-page.js'),
    nav: { section: 'use', label: 'Balance', icon: Wallet },
  },
];
