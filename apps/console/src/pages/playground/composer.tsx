/** `Composer`: message input of the playground, with attachments and a button that sends, or stops a running response. */
import { ArrowUp, ImagePlus, Square } from 'lucide-react';
import { type ClipboardEvent, type DragEvent, type KeyboardEvent, type Ref, useId, useRef, useState } from 'react';
import { Button } from '../../ui/forms/button.js';
import { TextAreaField } from '../../ui/forms/field.js';
import { ImageList } from './attachments/image-list.js';
import { type Attachments, pastedImages } from './attachments/use-attachments.js';

interface ComposerProps {
  readonly label: string;
  readonly placeholder: string;
  readonly sendLabel: string;
  readonly text: string;
  readonly onText: (text: string) => void;
  /** The input, which receives the focus after sending and stopping. */
  readonly input: { current: HTMLTextAreaElement | null };
  /** Images of the message. Absent: the message has text only. */
  readonly attachments?: Attachments;
  /** Reason why no image can be attached. Null: images can be attached. */
  readonly imageRefusal?: string | null;
  readonly busy: boolean;
  /** Disables sending, but not typing. */
  readonly disabled: boolean;
  /** Called with the trimmed text, which may be empty if there are images. */
  readonly onSend: (text: string) => void;
  readonly onStop: () => void;
}

export function Composer(props: ComposerProps) {
  const { label, placeholder, sendLabel, text, onText, input, attachments, imageRefusal = null, busy, disabled, onSend, onStop } = props;
  const refusalId = useId();
  const [isDropTarget, setDropTarget] = useState(false);
  const isEmpty = text.trim() === '' && (attachments === undefined || attachments.images.length === 0);
  const cannotSend = disabled || isEmpty || attachments?.isPreparing === true;
  const submit = (): void => {
    if (busy || cannotSend) return;
    onSend(text.trim());
    onText('');
    input.current?.focus();
  };
  const onPaste = (event: ClipboardEvent): void => {
    const files = pastedImages(event.clipboardData);
    if (attachments === undefined || files.length === 0) return;
    event.preventDefault();
    attachments.add(files);
  };
  const onDragOver = (event: DragEvent): void => {
    if (attachments === undefined || !event.dataTransfer.types.includes('Files')) return;
    event.preventDefault();
    setDropTarget(true);
  };
  const onDrop = (event: DragEvent): void => {
    setDropTarget(false);
    if (attachments === undefined || event.dataTransfer.files.length === 0) return;
    // By default, the browser would leave the page and open the file.
    event.preventDefault();
    attachments.add([...event.dataTransfer.files]);
  };
  return (
    <form
      className="composer"
      data-drop-target={isDropTarget || undefined}
      onDragOver={onDragOver}
      onDragLeave={() => setDropTarget(false)}
      onDrop={onDrop}
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      {attachments === undefined ? null : (
        <ComposerImages attachments={attachments} refusal={imageRefusal} refusalId={refusalId} onEmpty={() => input.current?.focus()} />
      )}
      <div className="composer-input">
        {attachments === undefined ? null : <AttachButton refusalId={imageRefusal === null ? null : refusalId} onFiles={attachments.add} />}
        <MessageInput
          label={label}
          placeholder={placeholder}
          text={text}
          onText={onText}
          inputRef={input}
          onPaste={onPaste}
          onEnter={submit}
        />
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
          <Button type="submit" kind="primary" disabled={cannotSend} icon={<ArrowUp size={16} aria-hidden="true" />}>
            {sendLabel}
          </Button>
        )}
      </div>
    </form>
  );
}

interface ComposerImagesProps {
  readonly attachments: Attachments;
  readonly refusal: string | null;
  readonly refusalId: string;
  readonly onEmpty: () => void;
}

/** Attached images, and the reason why images cannot be attached. */
function ComposerImages({ attachments, refusal, refusalId, onEmpty }: ComposerImagesProps) {
  const { images, isPreparing, problem, remove } = attachments;
  return (
    <>
      <ImageList label="Attached images" images={images} onRemove={remove} onEmpty={onEmpty} />
      <p role="status" className={isPreparing ? 'field-hint' : 'visually-hidden'}>
        {isPreparing ? 'Preparing the image.' : attachedCount(images.length)}
      </p>
      {problem === null || problem === refusal ? null : (
        <p role="alert" className="field-error">
          {problem}
        </p>
      )}
      {refusal === null ? null : (
        <p id={refusalId} role={problem === refusal ? 'alert' : undefined} className={problem === refusal ? 'field-error' : 'field-hint'}>
          {refusal}
        </p>
      )}
    </>
  );
}

function attachedCount(count: number): string {
  if (count === 0) return '';
  return count === 1 ? '1 image attached.' : `${count} images attached.`;
}

interface MessageInputProps {
  readonly label: string;
  readonly placeholder?: string;
  readonly text: string;
  readonly onText: (text: string) => void;
  readonly inputRef?: Ref<HTMLTextAreaElement>;
  readonly autoFocus?: boolean;
  readonly onPaste?: (event: ClipboardEvent) => void;
  readonly onEnter: () => void;
  readonly onEscape?: () => void;
}

/** Text area in which Enter submits and Shift+Enter starts a new line. */
export function MessageInput({ label, placeholder, text, onText, inputRef, autoFocus, onPaste, onEnter, onEscape }: MessageInputProps) {
  const onKeyDown = (event: KeyboardEvent): void => {
    // During composition, for example of Japanese, an input method editor uses these keys.
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
      onPaste={onPaste}
    />
  );
}

interface AttachButtonProps {
  /** Id of the element that explains why images cannot be attached. Null: images can be attached. */
  readonly refusalId: string | null;
  readonly onFiles: (files: readonly File[]) => void;
}

/** Opens the file picker for images. */
function AttachButton({ refusalId, onFiles }: AttachButtonProps) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <button
        type="button"
        className="icon-button attach-button"
        aria-label="Attach images"
        title="Attach images"
        aria-disabled={refusalId === null ? undefined : true}
        aria-describedby={refusalId ?? undefined}
        onClick={() => {
          if (refusalId === null) input.current?.click();
        }}
      >
        <ImagePlus size={20} aria-hidden="true" />
      </button>
      <input
        ref={input}
        type="file"
        accept="image/*"
        multiple
        hidden
        onChange={(event) => {
          onFiles([...(event.target.files ?? [])]);
          // Otherwise choosing the same file again would not cause a change event.
          event.target.value = '';
        }}
      />
    </>
  );
}
