/** The HTML of a document already shows its text (`build/documents/document-html.ts`): it stays until React can show the same. */
import type { QueryClient } from '@tanstack/react-query';
import { loadDocumentPage } from '../pages/pages.js';
import { keepLoaded } from './router.js';

/** Loads the document and its page. A failure is left to the page, which shows it. */
export async function loadPrerenderedDocument(queryClient: QueryClient): Promise<void> {
  try {
    const { Page, prefetchDocument } = await loadDocumentPage();
    await prefetchDocument(queryClient, window.location.pathname);
    keepLoaded(loadDocumentPage, Page);
  } catch {
    // The router loads the page again and reports the failure.
  }
}
