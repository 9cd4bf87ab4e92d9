/** Button for the file picker. On phones, the picker offers the camera and the photo library. */
import { ImagePlus } from 'lucide-react';
import { useRef } from 'react';

interface AttachButtonProps {
  /** Why images cannot be attached, by the id of the text that says so. */
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
          // The same file can be chosen again.
          event.target.value = '';
        }}
      />
    </>
  );
}
