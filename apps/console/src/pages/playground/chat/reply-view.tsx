/** `ReplyView`: the responses to one question, one column per model, with versions, verification, cost and speed. */
import { ChevronLeft, ChevronRight, FileText, RefreshCw, Trash2 } from 'lucide-react';
import { memo, useRef, useState } from 'react';
import { AnswerFooter } from '../answer-footer.js';
import { ResponseText } from '../markdown/response-text.js';
import { ProblemNote } from '../problem-note.js';
import { CopyAction, TurnAction } from '../turn-action.js';
import { type Answer, type AnswerColumn, isRunning, type Reply, shownAnswer } from './conversation.js';

interface ReplyViewProps {
  readonly reply: Reply;
  /** Only the last reply can be regenerated. */
  readonly isLast: boolean;
  /** False while a response runs, or without valid settings. */
  readonly canSend: boolean;
  readonly onRegenerate: (reply: Reply, column: number) => void;
  readonly onShow: (reply: Reply, column: number, version: number) => void;
  readonly canDelete: boolean;
  readonly onDelete: (reply: Reply) => void;
}

/** Memoized, because every delta of another response renders the list of messages. */
export const ReplyView = memo(function ReplyView({ reply, isLast, canSend, onRegenerate, onShow, canDelete, onDelete }: ReplyViewProps) {
  const isComparison = reply.columns.length > 1;
  return (
    <div className="answer-columns" data-columns={reply.columns.length}>
      {reply.columns.map((column, index) => (
        <ColumnView
          // biome-ignore lint/suspicious/noArrayIndexKey: the index is the identity of a column
          key={index}
          column={column}
          showsModel={isComparison}
          isLast={isLast}
          canSend={canSend}
          onRegenerate={() => onRegenerate(reply, index)}
          onShow={(version) => onShow(reply, index, version)}
          canDelete={canDelete}
          onDelete={() => onDelete(reply)}
        />
      ))}
    </div>
  );
});

interface ColumnViewProps extends Pick<ReplyViewProps, 'isLast' | 'canSend' | 'canDelete'> {
  readonly column: AnswerColumn;
  readonly showsModel: boolean;
  readonly onRegenerate: () => void;
  readonly onShow: (version: number) => void;
  readonly onDelete: () => void;
}

function ColumnView({ column, showsModel, isLast, canSend, onRegenerate, onShow, canDelete, onDelete }: ColumnViewProps) {
  const [isPlain, setPlain] = useState(false);
  const element = useRef<HTMLDivElement>(null);
  const answer = shownAnswer(column);
  if (answer === undefined) return null;
  const busy = isRunning(answer);
  const retry = (): void => {
    onRegenerate();
    // The focused button disappears with the note.
    element.current?.focus();
  };
  return (
    <div className="answer" data-state={answer.state} aria-busy={busy} tabIndex={-1} ref={element}>
      {showsModel ? <p className="answer-model">{answer.model}</p> : <span className="visually-hidden">{`${answer.model}: `}</span>}
      {answer.text === '' ? null : <ResponseText text={answer.text} plain={isPlain} />}
      <AnswerNotes answer={answer} />
      {answer.problem === null ? null : <ProblemNote problem={answer.problem} onRetry={isLast && canSend ? retry : null} />}
      <AnswerFooter
        provider={answer.provider}
        usage={answer.usage}
        finishReason={answer.finishReason}
        costMicroUsd={answer.costMicroUsd}
        timing={answer.timing}
        check={answer.check}
      />
      <div className="turn-actions">
        {column.versions.length < 2 ? null : <VersionSwitch column={column} disabled={!canDelete} onShow={onShow} />}
        {answer.text === '' ? null : (
          <>
            <CopyAction label="Copy response" value={answer.text} />
            <TurnAction
              label="Show plain text"
              icon={<FileText size={16} aria-hidden="true" />}
              pressed={isPlain}
              onClick={() => setPlain(!isPlain)}
            />
          </>
        )}
        {isLast ? (
          <TurnAction
            label="Regenerate response"
            icon={<RefreshCw size={16} aria-hidden="true" />}
            disabled={!canSend}
            onClick={onRegenerate}
          />
        ) : null}
        <TurnAction
          label={showsModel ? 'Delete both responses' : 'Delete response'}
          icon={<Trash2 size={16} aria-hidden="true" />}
          disabled={!canDelete}
          onClick={onDelete}
        />
      </div>
    </div>
  );
}

function AnswerNotes({ answer: { state, text, provider } }: { readonly answer: Answer }) {
  if (state === 'waiting') return <p className="turn-waiting">{provider === null ? 'Waiting for a machine…' : 'Processing the prompt…'}</p>;
  if (state === 'stopped') return <p className="turn-note">Stopped. The response is incomplete and cannot be verified.</p>;
  return state === 'complete' && text === '' ? <p className="turn-note">The model returned no output.</p> : null;
}

interface VersionSwitchProps {
  readonly column: AnswerColumn;
  readonly disabled: boolean;
  readonly onShow: (version: number) => void;
}

/** Switch such as `‹ 2 / 3 ›`. The next request contains the shown version. */
function VersionSwitch({ column: { versions, shown }, disabled, onShow }: VersionSwitchProps) {
  return (
    <span className="version-switch">
      <TurnAction
        label="Previous version"
        icon={<ChevronLeft size={16} aria-hidden="true" />}
        disabled={disabled || shown === 0}
        onClick={() => onShow(shown - 1)}
      />
      <span role="status">
        <span className="visually-hidden">Version </span>
        {`${shown + 1} / ${versions.length}`}
      </span>
      <TurnAction
        label="Next version"
        icon={<ChevronRight size={16} aria-hidden="true" />}
        disabled={disabled || shown === versions.length - 1}
        onClick={() => onShow(shown + 1)}
      />
    </span>
  );
}
