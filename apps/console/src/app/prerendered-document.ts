/**
 * `loadPrerenderedDocument`: loads a document and its page before the first rendering of React.
 *
 * The HTML file of a document already contains its text (build/documents/document-html.ts). Without this step, the text would disappear
 * until React has loaded the page.
 */
import type { QueryClient } from '@tanstack/react-query';
import { loadDocumentPage } from '../pages/pages.js';
import { keepLoaded } from './router.js';

/** Never rejects. */
export async function loadPrerenderedDocument(queryClient: QueryClient): Promise<void> {
  try {
    const { Page, prefetchDocument } = await loadDocumentPage();
    await prefetchDocument(queryClient, window.location.pathname);
    keepLoaded(loadDocumentPage, Page);
  } catch {
    // The router loads the page again and shows the error.
  }
}
