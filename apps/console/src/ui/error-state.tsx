/** Says what went wrong and what to do: in place of what could not be shown, or as a note beside what was tried. */
import { TriangleAlert } from 'lucide-react';
import { ApiError, ConnectionError } from '../app/api-error.js';
import { Button } from './button.js';

export interface ErrorStateProps {
  readonly error: unknown;
  readonly onRetry?: () => void;
  /** What could not be shown, such as "The providers". */
  readonly what?: string;
  readonly level?: 1;
}

export function ErrorState({ error, onRetry, what = 'This', level }: ErrorStateProps) {
  const title = `${what} could not be shown`;
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

/** A line that tells why something was not done, as above the buttons of a form. */
export function ErrorNote({ error, title }: { readonly error: unknown; readonly title?: string }) {
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
  const request = error instanceof ApiError && error.status >= 500 ? error.requestId : null;
  return (
    <>
      <p>{wordsFor(error)}</p>
      {request === null ? null : (
        <p className="small">
          If it goes on, tell the operator this number: <code>{request}</code>
        </p>
      )}
    </>
  );
}

/** What to say to a person about anything that was thrown. */
export function wordsFor(error: unknown): string {
  if (error instanceof ConnectionError) return `${error.message} Check your connection and try again.`;
  if (error instanceof ApiError && error.status === 429) {
    return error.retryAfter === null ? error.message : `Too many requests. Try again in ${error.retryAfter} seconds.`;
  }
  if (error instanceof Error) return error.message;
  return String(error);
}
