/** Input of the playground. Enter sends, Shift+Enter starts a new line, and the button stops a running response. */
import { ArrowUp, Square } from 'lucide-react';
import type { KeyboardEvent, Ref } from 'react';
import { Button } from '../../ui/forms/button.js';
import { TextAreaField } from '../../ui/forms/field.js';

interface ComposerProps {
  readonly label: string;
  readonly placeholder: string;
  readonly send: string;
  readonly text: string;
  readonly onText: (text: string) => void;
  /** The input, which receives the focus after sending and stopping. */
  readonly input: { current: HTMLTextAreaElement | null };
  readonly busy: boolean;
  /** Disables sending. */
  readonly disabled: boolean;
  readonly onSend: (text: string) => void;
  readonly onStop: () => void;
}

export function Composer({ label, placeholder, send, text, onText, input, busy, disabled, onSend, onStop }: ComposerProps) {
  const submit = (): void => {
    if (busy || disabled || text.trim() === '') return;
    onSend(text.trim());
    onText('');
    input.current?.focus();
  };
  return (
    <form
      className="composer"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      <MessageInput label={label} placeholder={placeholder} text={text} onText={onText} inputRef={input} onEnter={submit} />
      {busy ? (
        <Button
          kind="secondary"
          icon={<Square size={16} aria-hidden="true" />}
          onClick={() => {
            onStop();
            input.current?.focus();
          }}
        >
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

interface MessageInputProps {
  readonly label: string;
  readonly placeholder?: string;
  readonly text: string;
  readonly onText: (text: string) => void;
  readonly inputRef?: Ref<HTMLTextAreaElement>;
  readonly autoFocus?: boolean;
  readonly onEnter: () => void;
  readonly onEscape?: () => void;
}

/** Text area in which Enter acts and Shift+Enter starts a new line. */
export function MessageInput({ label, placeholder, text, onText, inputRef, autoFocus, onEnter, onEscape }: MessageInputProps) {
  const onKeyDown = (event: KeyboardEvent): void => {
    // While a word is being composed, the keys belong to the input method.
    if (event.nativeEvent.isComposing) return;
    if (event.key === 'Escape') onEscape?.();
    if (event.key !== 'Enter' || event.shiftKey) return;
    event.preventDefault();
    onEnter();
  };
  return (
    <TextAreaField
      ref={inputRef}
      label={label}
      hideLabel
      rows={2}
      placeholder={placeholder}
      autoFocus={autoFocus}
      value={text}
      onChange={(event) => onText(event.target.value)}
      onKeyDown={onKeyDown}
    />
  );
}
