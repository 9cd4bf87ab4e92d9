/** `SearchResults`: sections of the documents that match a query. The index is loaded with the first search. */
import { useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';
import { ErrorState } from '../../ui/feedback/error-state.js';
import { EmptyState, Skeleton } from '../../ui/feedback/placeholders.js';

export function SearchResults({ query }: { readonly query: string }) {
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
