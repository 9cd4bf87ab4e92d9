/** `start`: renders the console. Called by main.tsx. */
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { createQueryClient } from '../api/query-client.js';
import { App } from './app.js';
import { loadPrerenderedDocument } from './prerendered-document.js';

/** Renders into `root`. On the address of a document, waits until React can replace the prerendered text by the same text. */
export async function start(root: HTMLElement): Promise<void> {
  const queryClient = createQueryClient();
  if (root.querySelector('[data-prerendered]') !== null) await loadPrerenderedDocument(queryClient);
  createRoot(root).render(
    <StrictMode>
      <App queryClient={queryClient} />
    </StrictMode>,
  );
}
