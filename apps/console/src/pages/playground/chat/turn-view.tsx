/** One message of the conversation. Model output is rendered as plain text; markup has no effect. */

import { AnswerFooter } from '../answer-footer.js';
import { ProblemNote } from '../problem-note.js';
import type { Answer, Turn } from './conversation.js';

interface TurnViewProps {
  readonly turn: Turn;
  /** Null where asking again makes no sense any more. */
  readonly onRetry: ((answer: Answer) => void) | null;
}

export function TurnView({ turn, onRetry }: TurnViewProps) {
  if (turn.role === 'user') {
    return (
      <li className="turn" data-role="user">
        <span className="visually-hidden">You: </span>
        <div className="turn-text">{turn.text}</div>
      </li>
    );
  }
  const busy = turn.state === 'waiting' || turn.state === 'streaming';
  return (
    <li className="turn" data-role="assistant" data-state={turn.state} aria-busy={busy}>
      <span className="visually-hidden">{`${turn.model}: `}</span>
      {turn.text === '' ? null : <div className="turn-text">{turn.text}</div>}
      {turn.state === 'waiting' ? <p className="turn-waiting">{formatWait(turn.provider !== null)}</p> : null}
      {turn.state === 'stopped' ? (
        <p className="turn-aside">Stopped. The end and its signature did not come, so this cannot be verified.</p>
      ) : null}
      {turn.state === 'complete' && turn.text === '' ? <p className="turn-aside">The model ended without saying anything.</p> : null}
      {turn.problem === null ? null : <ProblemNote problem={turn.problem} onRetry={onRetry === null ? null : () => onRetry(turn)} />}
      <AnswerFooter
        provider={turn.provider}
        usage={turn.usage}
        finishReason={turn.finishReason}
        costMicroUsd={turn.costMicroUsd}
        check={turn.check}
      />
    </li>
  );
}

/** `placed`: a machine has taken the request. */
function formatWait(placed: boolean): string {
  return placed ? 'The machine reads…' : 'Waiting for a machine…';
}
