/** Displays of errors: `ErrorState` in place of missing content, `ErrorNote` above a form, `Loaded` around the content of a query. */
import { TriangleAlert } from 'lucide-react';
import type { ReactNode } from 'react';
import { Button } from '../forms/button.js';
import { DisplayableError } from './displayable-error.js';

interface ErrorStateProps {
  readonly error: unknown;
  readonly onRetry?: () => void;
  /** Subject of the title, such as "The providers". */
  readonly subject?: string;
  readonly level?: 1;
}

export function ErrorState({ error, onRetry, subject = 'This', level }: ErrorStateProps) {
  const title = `${subject} could not be shown`;
  return (
    <div className="empty-state" role="alert">
      <TriangleAlert size={28} strokeWidth={1.5} aria-hidden="true" />
      {level === 1 ? (
        <h1 className="empty-title" tabIndex={-1}>
          {title}
        </h1>
      ) : (
        <p className="empty-title">{title}</p>
      )}
      <div className="empty-text">
        <ErrorText error={error} />
      </div>
      {onRetry === undefined ? null : (
        <Button kind="primary" onClick={onRetry}>
          Try again
        </Button>
      )}
    </div>
  );
}

export interface LoadedProps {
  readonly query: { readonly data: unknown; readonly error: unknown; readonly refetch: () => unknown };
  readonly subject: string;
  /** Title of a note above data that could not be refreshed. Without a title, no note is shown. */
  readonly staleTitle?: string;
  readonly children: ReactNode;
}

/** Shows `children`, also while the query loads. If the query failed before it loaded any data, shows the error instead. */
export function Loaded({ query: { data, error, refetch }, subject, staleTitle, children }: LoadedProps) {
  if (data === undefined && error !== null) return <ErrorState subject={subject} error={error} onRetry={() => void refetch()} />;
  return (
    <>
      {error === null || staleTitle === undefined ? null : <ErrorNote error={error} title={staleTitle} />}
      {children}
    </>
  );
}

/** Note with the error of an action, for example above a form. Renders nothing if `error` is null. */
export function ErrorNote({ error, title }: { readonly error: unknown; readonly title?: string | undefined }) {
  if (error === null) return null;
  return (
    <div className="note" data-tone="bad" role="alert">
      <TriangleAlert size={18} aria-hidden="true" />
      <div>
        {title === undefined ? null : <strong>{title} </strong>}
        <ErrorText error={error} />
      </div>
    </div>
  );
}

function ErrorText({ error }: { readonly error: unknown }) {
  const supportId = error instanceof DisplayableError ? error.supportId : null;
  return (
    <>
      <p>{errorText(error)}</p>
      {supportId === null ? null : (
        <p className="small">
          If the problem persists, send the operator this request ID: <code>{supportId}</code>
        </p>
      )}
    </>
  );
}

/** Text for the user about any thrown value. */
export function errorText(error: unknown): string {
  if (error instanceof DisplayableError) return error.displayText;
  return error instanceof Error ? error.message : String(error);
}
