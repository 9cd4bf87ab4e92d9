/** All pages of the console. The order is that of the navigation. */
import { adminRoutes } from './admin/routes.js';
import { clientRoutes } from './client/routes.js';
import { networkRoutes } from './network/routes.js';
import { ownerRoutes } from './owner/routes.js';
import type { PageRoute } from './page-route.js';
import { playgroundRoutes } from './playground/routes.js';

export const PAGES: readonly PageRoute[] = [...networkRoutes, ...playgroundRoutes, ...clientRoutes, ...ownerRoutes, ...adminRoutes];
