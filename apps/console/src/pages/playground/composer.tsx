/** Input of the playground. Enter sends, Shift+Enter starts a new line, and the button stops a running response. */
import { ArrowUp, Square } from 'lucide-react';
import { type KeyboardEvent, useState } from 'react';
import { Button } from '../../ui/forms/button.js';
import { TextAreaField } from '../../ui/forms/field.js';

interface ComposerProps {
  readonly label: string;
  readonly placeholder: string;
  readonly send: string;
  readonly busy: boolean;
  /** Disables sending. */
  readonly disabled: boolean;
  readonly onSend: (text: string) => void;
  readonly onStop: () => void;
}

export function Composer({ label, placeholder, send, busy, disabled, onSend, onStop }: ComposerProps) {
  const [text, setText] = useState('');
  const submit = (): void => {
    if (busy || disabled || text.trim() === '') return;
    onSend(text.trim());
    setText('');
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    // While a word is being composed, Enter belongs to the input method.
    if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    submit();
  };
  return (
    <form
      className="composer"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      <TextAreaField
        label={label}
        hideLabel
        rows={2}
        placeholder={placeholder}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={onKeyDown}
      />
      {busy ? (
        <Button kind="secondary" icon={<Square size={16} aria-hidden="true" />} onClick={onStop}>
          Stop
        </Button>
      ) : (
        <Button type="submit" kind="primary" disabled={disabled || text.trim() === ''} icon={<ArrowUp size={16} aria-hidden="true" />}>
          {send}
        </Button>
      )}
    </form>
  );
}
