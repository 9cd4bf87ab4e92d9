/** The pages of this folder. */
import { ChartColumn, KeyRound, Rocket, UserRound, Wallet } from 'lucide-react';
import type { PageRoute } from '../page-route.js';
import { PATHS } from '../paths.js';

export const clientRoutes: readonly PageRoute[] = [
  {
    path: PATHS.quickStart,
    title: 'Quick start',
    access: 'account',
    load: () => import('./quick-start.js'),
    nav: { section: 'use', label: 'Quick start', icon: Rocket },
  },
  {
    path: PATHS.keys,
    title: 'API keys',
    access: 'account',
    load: () => import('./keys.js'),
    nav: { section: 'use', label: 'API keys', icon: KeyRound },
  },
  {
    path: PATHS.usage,
    title: 'Usage',
    access: 'account',
    load: () => import('./usage.js'),
    nav: { section: 'use', label: 'Usage', icon: ChartColumn },
  },
  {
    path: PATHS.balance,
    title: 'Balance',
    access: 'account',
    load: () => import('./balance.js'),
    nav: { section: 'use', label: 'Balance', icon: Wallet },
  },
  {
    path: PATHS.account,
    title: 'Account',
    access: 'account',
    load: () => import('./account.js'),
    nav: { section: 'use', label: 'Account', icon: UserRound },
  },
  { path: PATHS.signIn, title: 'Sign in', access: 'public', load: () => import('./sign-in.js') },
  { path: PATHS.signUp, title: 'Create an account', access: 'public', load: () => import('./sign-up.js') },
  { path: PATHS.resetPassword, title: 'Reset the password', access: 'public', load: () => import('./reset-password.js') },
];
