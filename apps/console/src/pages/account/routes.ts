/** Pages for signing in and for the account itself. */
import { UserRound } from 'lucide-react';
import type { PageRoute } from '../../routing/page-route.js';
import { PATHS } from '../../routing/paths.js';

export const accountRoutes: readonly PageRoute[] = [
  {
    path: PATHS.account,
    title: 'Account',
    access: 'account',
    load: () => import('./account-page.js'),
    nav: { section: 'use', label: 'Account', icon: UserRound },
  },
  { path: PATHS.signIn, title: 'Sign in', access: 'public', load: () => import('./sign-in-page.js') },
  { path: PATHS.signUp, title: 'Create an account', access: 'public', load: () => import('./sign-up-page.js') },
  { path: PATHS.resetPassword, title: 'Reset the password', access: 'public', load: () => import('./reset-password-page.js') },
];
