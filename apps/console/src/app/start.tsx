/** `start`: renders the console. Called by main.tsx. */

import type { QueryClient } from '@tanstack/react-query';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { createQueryClient } from '../api/query-client.js';
import { loadDocumentPage } from '../pages/pages.js';
import { App } from './app.js';
import { keepLoaded } from './router.js';

/** Renders into `root`. On a documentation page, first loads the document, so that React renders the text that is already prerendered. */
export async function start(root: HTMLElement): Promise<void> {
  const queryClient = createQueryClient();
  if (root.querySelector('[data-prerendered]') !== null) await loadPrerenderedDocument(queryClient);
  createRoot(root).render(
    <StrictMode>
      <App queryClient={queryClient} />
    </StrictMode>,
  );
}

/**
 * Loads a document and its page before the first rendering of React. Never rejects.
 *
 * The HTML file of a document already contains its text (build/documents/document-html.ts). Without this step, the text would disappear
 * until React has loaded the page.
 */
async function loadPrerenderedDocument(queryClient: QueryClient): Promise<void> {
  try {
    const { Page, prefetchDocument } = await loadDocumentPage();
    await prefetchDocument(queryClient, window.location.pathname);
    keepLoaded(loadDocumentPage, Page);
  } catch {
    // The router loads the page again and shows the error.
  }
}
