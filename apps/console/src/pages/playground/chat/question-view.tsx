/** A message of the user, which can be edited and sent again. */
import { Pencil, RotateCcw, Trash2 } from 'lucide-react';
import { useEffect, useRef, useState } from 'react';
import { Button } from '../../../ui/forms/button.js';
import { MessageInput } from '../composer.js';
import { TurnAction } from '../turn-action.js';
import type { Question } from './conversation.js';

interface QuestionViewProps {
  readonly question: Question;
  /** No message follows. */
  readonly isLast: boolean;
  /** False while a response runs or the parameters are invalid. */
  readonly canSend: boolean;
  readonly onSend: (text: string) => void;
  readonly canDelete: boolean;
  readonly onDelete: () => void;
}

export function QuestionView({ question, isLast, canSend, onSend, canDelete, onDelete }: QuestionViewProps) {
  const [draft, setDraft] = useState<string | null>(null);
  const actions = useRef<HTMLDivElement>(null);
  const wasEditing = useRef(false);
  const isEditing = draft !== null;
  // The form took the place of the buttons: a cancelled one returns the focus to the first of them.
  useEffect(() => {
    if (wasEditing.current && !isEditing) actions.current?.querySelector('button')?.focus();
    wasEditing.current = isEditing;
  }, [isEditing]);
  if (draft !== null) {
    const send = (): void => {
      if (canSend && draft.trim() !== '') onSend(draft.trim());
    };
    return (
      <form
        className="question-edit"
        onSubmit={(event) => {
          event.preventDefault();
          send();
        }}
      >
        <MessageInput label="Edit message" text={draft} onText={setDraft} autoFocus onEnter={send} onEscape={() => setDraft(null)} />
        <p className="field-hint">{isLast ? 'Sends the message again.' : 'Sends the message again and removes the messages after it.'}</p>
        <div className="row">
          <Button type="submit" kind="primary" size="small" disabled={!canSend || draft.trim() === ''}>
            Send
          </Button>
          <Button size="small" onClick={() => setDraft(null)}>
            Cancel
          </Button>
        </div>
      </form>
    );
  }
  return (
    <>
      <div className="turn-text">{question.text}</div>
      <div className="turn-actions" ref={actions}>
        <TurnAction
          label="Edit message"
          icon={<Pencil size={16} aria-hidden="true" />}
          disabled={!canSend}
          onClick={() => setDraft(question.text)}
        />
        {isLast ? (
          <TurnAction
            label="Send message again"
            icon={<RotateCcw size={16} aria-hidden="true" />}
            disabled={!canSend}
            onClick={() => onSend(question.text)}
          />
        ) : null}
        <TurnAction label="Delete message" icon={<Trash2 size={16} aria-hidden="true" />} disabled={!canDelete} onClick={onDelete} />
      </div>
    </>
  );
}
