/** Route patterns of all pages. The build writes `pages.json` with the patterns, for which a server answers `index.html`. */
export const PATHS = {
  home: '/',
  network: '/network',
  models: '/models',
  model: '/models/:id',
  leaderboard: '/leaderboard',
  status: '/status',
  providers: '/providers',
  provider: '/providers/:id',
  verify: '/verify',
  modes: '/modes',

  docs: '/docs',
  apiReference: '/api-reference',
  document: '/docs/:id',
  decision: '/docs/decisions/:id',

  signIn: '/sign-in',
  secondStep: '/sign-in/two-factor',
  signUp: '/sign-up',
  resetPassword: '/reset-password',
  account: '/account',
  organisation: '/organisation',
  invitation: '/invitation',
  balance: '/balance',
  deposit: '/balance/deposits/:id',
  usage: '/usage',
  usageRequest: '/usage/:id',
  keys: '/keys',
  quickStart: '/quick-start',
  playground: '/playground',

  link: '/link',
  machines: '/machines',
  machine: '/machines/:id',
  earnings: '/earnings',

  admin: '/admin',
  adminCatalogue: '/admin/catalogue',
  adminAccount: '/admin/accounts/:id',
  adminProvider: '/admin/providers/:id',
  adminIncidents: '/admin/incidents',
  adminReleases: '/admin/releases',
  adminActions: '/admin/actions',
  adminPrices: '/admin/prices',
  adminAccounts: '/admin/accounts',
  adminDeposits: '/admin/deposits',
  adminWithdrawals: '/admin/withdrawals',
  adminProviders: '/admin/providers',
  adminHealth: '/admin/health',
} as const;

/** Guide for Mac owners, from installation to earnings. */
export const PROVIDER_GUIDE = '/docs/provider-guide';

/** Path of a detail page: `pathWithId(PATHS.machine, id)`. */
export function pathWithId(path: Extract<(typeof PATHS)[keyof typeof PATHS], `${string}/:id`>, id: string): string {
  return path.replace(':id', encodeURIComponent(id));
}
