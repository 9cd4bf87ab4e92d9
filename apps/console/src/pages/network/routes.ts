/** Public pages: network state, providers, leaderboard, verification. */
import { Activity, BadgeCheck, Laptop, Trophy } from 'lucide-react';
import type { PageRoute } from '../../routing/page-route.js';
import { PATHS } from '../../routing/paths.js';

export const networkRoutes: readonly PageRoute[] = [
  {
    path: PATHS.network,
    title: 'Network',
    access: 'public',
    load: () => import('./network-page.js'),
    nav: { section: 'network', label: 'Overview', icon: Activity },
  },
  {
    path: PATHS.providers,
    title: 'Providers',
    access: 'public',
    load: () => import('./providers-page.js'),
    nav: { section: 'network', label: 'Providers', icon: Laptop },
  },
  { path: PATHS.provider, title: 'Provider', access: 'public', load: () => import('./provider-page.js') },
  {
    path: PATHS.leaderboard,
    title: 'Leaderboard',
    access: 'public',
    load: () => import('./leaderboard-page.js'),
    nav: { section: 'network', label: 'Leaderboard', icon: Trophy },
  },
  {
    path: PATHS.verify,
    title: 'Verify a record',
    access: 'public',
    load: () => import('./verify-page.js'),
    nav: { section: 'network', label: 'Verify a record', icon: BadgeCheck },
  },
];
