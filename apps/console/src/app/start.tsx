/** Renders the console. */
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { createQueryClient } from '../api/query-client.js';
import { App } from './app.js';
import { loadPrerenderedDocument } from './prerendered-document.js';

/** Renders into `root`; the text of a prerendered document stays until its page can show it. */
export async function start(root: HTMLElement): Promise<void> {
  const queryClient = createQueryClient();
  if (root.querySelector('[data-prerendered]') !== null) await loadPrerenderedDocument(queryClient);
  createRoot(root).render(
    <StrictMode>
      <App queryClient={queryClient} />
    </StrictMode>,
  );
}
