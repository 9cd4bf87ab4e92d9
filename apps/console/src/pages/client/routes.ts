/** The pages of this folder. */
import type { PageRoute } from '../page-route.js';

export const clientRoutes: readonly PageRoute[] = [];
