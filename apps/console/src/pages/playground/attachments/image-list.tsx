/** Thumbnails of the images of a message. */
import './attachments.css';
import { X } from 'lucide-react';
import { useRef } from 'react';
import type { QuestionImage } from './question-image.js';

interface ImageListProps {
  readonly label: string;
  readonly images: readonly QuestionImage[];
  /** Called to remove an image. Absent: the images belong to a sent message, and no buttons are shown. */
  readonly onRemove?: (index: number) => void;
  /** Takes the focus after the last image was removed. */
  readonly onEmpty?: () => void;
}

export function ImageList({ label, images, onRemove, onEmpty }: ImageListProps) {
  const list = useRef<HTMLUListElement>(null);
  if (images.length === 0) return null;
  const remove = (index: number): void => {
    const buttons = list.current?.querySelectorAll('button');
    // Removes the last element; the others show the following elements.
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
