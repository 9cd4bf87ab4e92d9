/** `/docs/…`: documents of the repository, with a search over all. `/docs` lists them by audience. */
/// <reference path="./documents.d.ts" />
import './docs.css';
import { type BuiltDocument, DOCUMENTS } from 'virtual:documents';
import { type QueryClient, queryOptions, useQuery } from '@tanstack/react-query';
import { useEffect } from 'react';
import { Link, useLocation } from 'wouter';
import { decodePart } from '../../routing/decode-part.js';
import { PATHS } from '../../routing/paths.js';
import { PageHeader } from '../../ui/display/page.js';
import { ErrorState } from '../../ui/feedback/error-state.js';
import { EmptyState, PageSkeleton, Skeleton } from '../../ui/feedback/placeholders.js';
import { LinkButton } from '../../ui/forms/button.js';
import { Field } from '../../ui/forms/field.js';
import { useUrlText } from '../../ui/navigation/url-state.js';
import { DocumentContent } from './document-content.js';

/** Loads the document of a path into the query cache. Used before the first rendering; see `app/start.tsx`. */
export async function prefetchDocument(queryClient: QueryClient, location: string): Promise<void> {
  const path = pathOf(location);
  const load = loaderOf(path);
  if (load !== undefined) await queryClient.prefetchQuery(documentQuery(path, load));
}

export function Page() {
  const [location] = useLocation();
  const path = pathOf(location);
  const load = loaderOf(path);
  if (load === undefined) {
    return (
      <EmptyState title="Document not found" level={1} action={<LinkButton href={PATHS.docs}>All documents</LinkButton>}>
        Check the address. The document may have moved.
      </EmptyState>
    );
  }
  return <LoadedDocument path={path} load={load} />;
}

type LoadDocument = () => Promise<{ readonly document: BuiltDocument }>;

function pathOf(location: string): string {
  return location.replace(/\/$/, '');
}

function loaderOf(path: string): LoadDocument | undefined {
  return Object.hasOwn(DOCUMENTS, path) ? DOCUMENTS[path] : undefined;
}

function documentQuery(path: string, load: LoadDocument) {
  return queryOptions({ queryKey: ['document', path], queryFn: async () => (await load()).document, staleTime: Infinity });
}

interface LoadedDocumentProps {
  readonly path: string;
  readonly load: LoadDocument;
}

function LoadedDocument({ path, load }: LoadedDocumentProps) {
  const { data, error } = useQuery(documentQuery(path, load));
  // After a deployment, the files of the previous release no longer exist, so a retry reloads the whole console.
  if (error !== null) return <ErrorState level={1} subject="This document" error={error} onRetry={() => window.location.reload()} />;
  return data === undefined ? <PageSkeleton /> : <Document document={data} isIndex={path === PATHS.docs} />;
}

function Document({ document, isIndex }: { readonly document: BuiltDocument; readonly isIndex: boolean }) {
  const [query, setQuery] = useUrlText('q');
  const title = isIndex ? 'Documentation' : document.title;
  useEffect(() => {
    window.document.title = `${title} · Inference network`;
    const anchor = decodePart(window.location.hash.slice(1));
    if (anchor !== '') window.document.getElementById(anchor)?.scrollIntoView();
  }, [title]);
  return (
    <>
      {isIndex ? null : (
        <nav className="document-path" aria-label="Documents">
          <Link href={PATHS.docs}>Documentation</Link>
        </nav>
      )}
      <PageHeader
        title={title}
        about={isIndex ? 'For API clients, Mac owners, operators and contributors.' : undefined}
        actions={isIndex ? <LinkButton href={PATHS.apiReference}>API reference</LinkButton> : undefined}
      />
      <form className="document-search" onSubmit={(event) => event.preventDefault()}>
        <Field
          label="Search the documentation"
          hideLabel={!isIndex}
          type="search"
          placeholder={isIndex ? 'For example: rate limits' : 'Search the documentation'}
          autoComplete="off"
          value={query}
          onChange={(event) => setQuery(event.target.value)}
        />
      </form>
      {query.trim() === '' ? (
        <div className="document-columns" data-index={isIndex || undefined}>
          {isIndex || document.contents.length < 2 ? null : <Contents contents={document.contents} />}
          <article className="document">
            <DocumentContent tree={document.tree} fileUrls={document.fileUrls} />
          </article>
        </div>
      ) : (
        <SearchResults query={query} />
      )}
    </>
  );
}

/** Table of contents. Initially open if the window has room for a second column. */
function Contents({ contents }: { readonly contents: BuiltDocument['contents'] }) {
  return (
    <nav className="document-contents" aria-label="On this page">
      <details open={window.matchMedia('(min-width: 75rem)').matches}>
        <summary>On this page</summary>
        <ul>
          {contents.map(({ id, title }) => (
            <li key={id}>
              <a href={`#${id}`}>{title}</a>
            </li>
          ))}
        </ul>
      </details>
    </nav>
  );
}

/** Sections of the documents that match a query. The index is loaded with the first search. */
function SearchResults({ query }: { readonly query: string }) {
  const { data, error } = useQuery({
    queryKey: ['document-search'],
    queryFn: async () => (await import('./search-index.js')).searchIndex(),
    staleTime: Infinity,
  });
  if (error !== null) return <ErrorState subject="The search" error={error} onRetry={() => window.location.reload()} />;
  if (data === undefined) {
    return (
      <div aria-busy="true">
        <Skeleton height="12rem" />
      </div>
    );
  }
  const results = data.search(query);
  return (
    <section aria-label="Search results">
      <p className="document-result-count" role="status">
        {results.length === 1
          ? '1 section matches'
          : results.length === data.maxResults
            ? `The best ${results.length} sections`
            : `${results.length} sections match`}
      </p>
      {results.length === 0 ? (
        <EmptyState title="No section matches">Try fewer or other words.</EmptyState>
      ) : (
        <ol className="document-results">
          {results.map(({ href, document, title, excerpt }) => (
            <li key={href}>
              <Link href={href}>{title}</Link>
              {title === document ? null : <span className="muted small"> {document}</span>}
              <p className="muted">{excerpt}</p>
            </li>
          ))}
        </ol>
      )}
    </section>
  );
}
