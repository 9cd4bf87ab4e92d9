/** All pages of the console, in the order of the navigation. */
import type { PageRoute } from '../routing/page-route.js';
import { accountRoutes } from './account/routes.js';
import { adminRoutes } from './admin/routes.js';
import { clientRoutes } from './client/routes.js';
import { networkRoutes } from './network/routes.js';
import { ownerRoutes } from './owner/routes.js';
import { playgroundRoutes } from './playground/routes.js';

export const PAGES: readonly PageRoute[] = [
  ...networkRoutes,
  ...playgroundRoutes,
  ...clientRoutes,
  ...accountRoutes,
  ...ownerRoutes,
  ...adminRoutes,
];
