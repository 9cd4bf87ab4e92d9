/** Pages for operators. */
import { BookOpen, Cpu, HandCoins, HeartPulse, PiggyBank, ScrollText, Tags, Users } from 'lucide-react';
import type { PageRoute } from '../../routing/page-route.js';
import { PATHS } from '../../routing/paths.js';

export const adminRoutes: readonly PageRoute[] = [
  { path: PATHS.admin, title: 'Operations', access: 'admin', load: () => import('./home-page.js') },
  {
    path: PATHS.adminHealth,
    title: 'Health',
    access: 'admin',
    load: () => import('./system/health-page.js'),
    nav: { section: 'admin', label: 'Health', icon: HeartPulse },
  },
  {
    path: PATHS.adminProviders,
    title: 'Providers of the network',
    access: 'admin',
    load: () => import('./providers/providers-page.js'),
    nav: { section: 'admin', label: 'All machines', icon: Cpu },
  },
  { path: PATHS.adminProvider, title: 'Provider', access: 'admin', load: () => import('./providers/provider-page.js') },
  {
    path: PATHS.adminAccounts,
    title: 'Accounts',
    access: 'admin',
    load: () => import('./accounts/accounts-page.js'),
    nav: { section: 'admin', label: 'Accounts', icon: Users },
  },
  { path: PATHS.adminAccount, title: 'Account', access: 'admin', load: () => import('./accounts/account-page.js') },
  {
    path: PATHS.adminDeposits,
    title: 'Deposits',
    access: 'admin',
    load: () => import('./payments/deposits-page.js'),
    nav: { section: 'admin', label: 'Deposits', icon: PiggyBank },
  },
  {
    path: PATHS.adminWithdrawals,
    title: 'Withdrawals',
    access: 'admin',
    load: () => import('./payments/withdrawals-page.js'),
    nav: { section: 'admin', label: 'Withdrawals', icon: HandCoins },
  },
  {
    path: PATHS.adminPrices,
    title: 'Prices',
    access: 'admin',
    load: () => import('./models/prices-page.js'),
    nav: { section: 'admin', label: 'Prices', icon: Tags },
  },
  {
    path: PATHS.adminCatalogue,
    title: 'Model catalogue',
    access: 'admin',
    load: () => import('./models/catalogue-page.js'),
    nav: { section: 'admin', label: 'Catalogue', icon: BookOpen },
  },
  {
    path: PATHS.adminActions,
    title: 'Audit log',
    access: 'admin',
    load: () => import('./system/audit-log-page.js'),
    nav: { section: 'admin', label: 'Audit log', icon: ScrollText },
  },
];
