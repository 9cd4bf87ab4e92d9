/** `QuestionView`: a message of the user, with buttons to edit, resend and delete. */
import { Pencil, RotateCcw, Trash2 } from 'lucide-react';
import { memo, useEffect, useRef, useState } from 'react';
import { Button } from '../../../ui/forms/button.js';
import { ImageList } from '../attachments/image-list.js';
import { MessageInput } from '../composer.js';
import { TurnAction } from '../turn-action.js';
import type { Question, QuestionContent } from './conversation.js';

interface QuestionViewProps {
  readonly question: Question;
  /** Whether no message follows. */
  readonly isLast: boolean;
  /** False while a response runs, or without valid settings. */
  readonly canSend: boolean;
  readonly onSend: (question: Question, content: QuestionContent) => void;
  readonly canDelete: boolean;
  readonly onDelete: (question: Question) => void;
}

/** Memoized, because every delta of a response renders the list of messages. */
export const QuestionView = memo(function QuestionView({ question, isLast, canSend, onSend, canDelete, onDelete }: QuestionViewProps) {
  const { text, images = [], omittedImages = 0 } = question;
  const [draft, setDraft] = useState<QuestionContent | null>(null);
  const input = useRef<HTMLTextAreaElement>(null);
  const actions = useRef<HTMLDivElement>(null);
  const wasEditing = useRef(false);
  const isEditing = draft !== null;
  // While the form is open, the buttons do not exist. Cancelling returns the focus to the first button.
  useEffect(() => {
    if (wasEditing.current && !isEditing) actions.current?.querySelector('button')?.focus();
    wasEditing.current = isEditing;
  }, [isEditing]);
  if (draft !== null) {
    const content = { ...draft, text: draft.text.trim() };
    const cannotSend = !canSend || (content.text === '' && content.images.length === 0);
    const send = (): void => {
      if (!cannotSend) onSend(question, content);
    };
    const removeImage = (index: number): void => setDraft({ ...draft, images: draft.images.filter((_, at) => at !== index) });
    return (
      <form
        className="question-edit"
        onSubmit={(event) => {
          event.preventDefault();
          send();
        }}
      >
        <ImageList label="Images of the message" images={draft.images} onRemove={removeImage} onEmpty={() => input.current?.focus()} />
        <MessageInput
          label="Edit message"
          text={draft.text}
          onText={(next) => setDraft({ ...draft, text: next })}
          inputRef={input}
          autoFocus
          onEnter={send}
          onEscape={() => setDraft(null)}
        />
        <p className="field-hint">{isLast ? 'Sends the message again.' : 'Sends the message again and removes the messages after it.'}</p>
        <div className="row">
          <Button type="submit" kind="primary" size="small" disabled={cannotSend}>
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
      <ImageList label="Images of the message" images={images} />
      {omittedImages === 0 ? null : <p className="turn-note">{omittedNote(omittedImages)}</p>}
      {text === '' ? null : <div className="turn-text">{text}</div>}
      <div className="turn-actions" ref={actions}>
        <TurnAction
          label="Edit message"
          icon={<Pencil size={16} aria-hidden="true" />}
          disabled={!canSend}
          onClick={() => setDraft({ text, images })}
        />
        {isLast ? (
          <TurnAction
            label="Send message again"
            icon={<RotateCcw size={16} aria-hidden="true" />}
            disabled={!canSend}
            onClick={() => onSend(question, { text, images })}
          />
        ) : null}
        <TurnAction
          label="Delete message"
          icon={<Trash2 size={16} aria-hidden="true" />}
          disabled={!canDelete}
          onClick={() => onDelete(question)}
        />
      </div>
    </>
  );
});

function omittedNote(count: number): string {
  return `${count === 1 ? '1 image was' : `${count} images were`} too large to keep in this tab, and will not be sent again.`;
}
