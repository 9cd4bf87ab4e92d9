/** One message of the conversation. Model output is rendered as plain text; markup has no effect. */
import { AnswerFooter } from '../answer-footer.js';
import { ProblemNote } from '../problem-note.js';
import type { Answer, Turn } from './conversation.js';

interface TurnViewProps {
  readonly turn: Turn;
  /** Null if a retry is not possible. */
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
      {turn.state === 'waiting' ? <p className="turn-waiting">{waitingText(turn.provider !== null)}</p> : null}
      {turn.state === 'stopped' ? <p className="turn-note">Stopped. The response is incomplete and cannot be verified.</p> : null}
      {turn.state === 'complete' && turn.text === '' ? <p className="turn-note">The model returned no output.</p> : null}
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

/** `placed`: a machine has accepted the request. */
function waitingText(placed: boolean): string {
  return placed ? 'Processing the prompt…' : 'Waiting for a machine…';
}
