/** `LoadedPage`: page of a resource, such as an account. Shows a placeholder while loading, then the page, an error or `notFound`. */
import type { ReactNode } from 'react';
import { ErrorState } from '../ui/feedback/error-state.js';
import { PageSkeleton } from '../ui/feedback/placeholders.js';
import { ApiError } from './api-error.js';

interface LoadedPageProps<Data> {
  readonly query: { readonly data: Data | undefined; readonly error: unknown; readonly refetch: () => unknown };
  /** Subject of the sentence about an error, such as "The account". */
  readonly subject: string;
  /** Shown if the resource does not exist, or its id is invalid. */
  readonly notFound: ReactNode;
  readonly page: (data: Data) => ReactNode;
}

export function LoadedPage<Data>({ query: { data, error, refetch }, subject, notFound, page }: LoadedPageProps<Data>) {
  if (error instanceof ApiError && (error.status === 404 || error.status === 400)) return notFound;
  if (data !== undefined) return page(data);
  return error === null ? <PageSkeleton /> : <ErrorState level={1} subject={subject} error={error} onRetry={() => void refetch()} />;
}
