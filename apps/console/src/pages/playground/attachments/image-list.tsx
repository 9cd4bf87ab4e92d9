/** `ImageList`: thumbnails of the images of a message. */
import './attachments.css';
import { X } from 'lucide-react';
import { useRef } from 'react';
import type { QuestionImage } from './question-image.js';

interface ImageListProps {
  readonly label: string;
  readonly images: readonly QuestionImage[];
  /** Absent for sent messages, whose images have no remove buttons. */
  readonly onRemove?: (index: number) => void;
  /** Called after the last image is removed, to move the focus elsewhere. */
  readonly onEmpty?: () => void;
}

export function ImageList({ label, images, onRemove, onEmpty }: ImageListProps) {
  const list = useRef<HTMLUListElement>(null);
  if (images.length === 0) return null;
  const remove = (index: number): void => {
    const buttons = list.current?.querySelectorAll('button');
    // Keys are indices, so React removes the last element and shifts the images. The button to focus therefore exists already.
    const remaining = buttons?.[Math.min(index, buttons.length - 2)];
    onRemove?.(index);
    if (remaining === undefined) onEmpty?.();
    else remaining.focus();
  };
  return (
    <ul className={onRemove === undefined ? 'attached-images sent-images' : 'attached-images'} aria-label={label} ref={list}>
      {images.map(({ name, dataUri }, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the same image may be attached twice, and has no state
        <li key={index} className="attached-image">
          <img src={dataUri} alt={name} title={name} />
          {onRemove === undefined ? null : (
            <button type="button" className="attached-image-remove" aria-label={`Remove ${name}`} onClick={() => remove(index)}>
              <X size={14} aria-hidden="true" />
            </button>
          )}
        </li>
      ))}
    </ul>
  );
}
