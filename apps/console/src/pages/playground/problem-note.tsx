/** `ProblemNote`: shows the error of a request with a remedy, such as a retry. The retry button is disabled during `retry-after`. */
import { useEffect, useState } from 'react';
import { useSettings } from '../../api/session.js';
import { depositAction } from '../../features/account/deposit-texts.js';
import { PATHS } from '../../routing/paths.js';
import { Button, LinkButton } from '../../ui/forms/button.js';
import type { Problem } from './requests/problems.js';

export function ProblemNote({ problem, onRetry }: { readonly problem: Problem; readonly onRetry: (() => void) | null }) {
  const { remedy } = problem;
  const settings = useSettings();
  return (
    <div className="note" data-tone="bad" role="alert">
      <div className="stack-small">
        <strong className="note-title">{problem.title}</strong>
        <p>{problem.text}</p>
        {remedy.kind === 'link' ? (
          <div>
            <LinkButton href={remedy.href} size="small">
              {remedy.label}
            </LinkButton>
          </div>
        ) : null}
        {remedy.kind === 'deposit' ? (
          <div className="row">
            <LinkButton href={PATHS.balance} size="small">
              {depositAction(settings?.deposits ?? [])}
            </LinkButton>
            {onRetry === null ? null : <RetryButton after={null} onRetry={onRetry} />}
          </div>
        ) : null}
        {remedy.kind === 'retry' && onRetry !== null ? <RetryButton after={remedy.after} onRetry={onRetry} /> : null}
      </div>
    </div>
  );
}

function RetryButton({ after, onRetry }: { readonly after: number | null; readonly onRetry: () => void }) {
  const [left, setLeft] = useState(Math.ceil(after ?? 0));
  useEffect(() => {
    if (left <= 0) return;
    const timer = setTimeout(() => setLeft((seconds) => seconds - 1), 1000);
    return () => clearTimeout(timer);
  }, [left]);
  return (
    <div>
      <Button size="small" disabled={left > 0} onClick={onRetry}>
        {left > 0 ? `Try again in ${left} s` : 'Try again'}
      </Button>
    </div>
  );
}
