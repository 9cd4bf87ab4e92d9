/** Route of the playground. */
import { MessagesSquare } from 'lucide-react';
import type { PageRoute } from '../../routing/page-route.js';
import { PATHS } from '../../routing/paths.js';

export const playgroundRoutes: readonly PageRoute[] = [
  {
    path: PATHS.playground,
    title: 'Playground',
    access: 'account',
    load: () => import('./playground-page.js'),
    nav: { section: 'use', label: 'Playground', icon: MessagesSquare },
  },
];
