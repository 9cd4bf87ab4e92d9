/** `AttachButton`: opens the file picker for images. On phones, the picker offers the camera and the photo library. */
import { ImagePlus } from 'lucide-react';
import { useRef } from 'react';

interface AttachButtonProps {
  /** Id of the element that explains why images cannot be attached. Null: images can be attached. */
  readonly refusalId: string | null;
  readonly onFiles: (files: readonly File[]) => void;
}

export function AttachButton({ refusalId, onFiles }: AttachButtonProps) {
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
