/** `start`: renders the console. Called by main.tsx. */
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { createQueryClient } from '../api/query-client.js';
import { App } from './app.js';
import { loadPrerenderedDocument } from './prerendered-document.js';

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
