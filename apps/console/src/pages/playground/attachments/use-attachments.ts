/** `useAttachments`: images that the user attaches to the message that is being written. */
import { useRef, useState } from 'react';
import { prepareImage, UnusableImage } from './prepare-image.js';
import { imageProblem, type QuestionImage } from './question-image.js';

export interface Attachments {
  readonly images: readonly QuestionImage[];
  readonly isPreparing: boolean;
  /** Reason why the last image was not attached, if any. */
  readonly problem: string | null;
  add(files: readonly File[]): void;
  remove(index: number): void;
  clear(): void;
}

interface AttachmentsOptions {
  /** Images of earlier messages. Every request repeats them, so they count against the limits. */
  readonly sent: readonly QuestionImage[];
  /** Reason why no image can be attached, if any. */
  readonly refusal: string | null;
}

export function useAttachments({ sent, refusal }: AttachmentsOptions): Attachments {
  const [images, setImages] = useState<readonly QuestionImage[]>([]);
  const [preparing, setPreparing] = useState(0);
  const [problem, setProblem] = useState<string | null>(null);
  // The newest list. `attach` runs across renders and would see an old `images`.
  const current = useRef(images);
  const set = (next: readonly QuestionImage[]): void => {
    current.current = next;
    setImages(next);
  };

  /** Stops at the first file that cannot be attached. */
  const attach = async (files: readonly File[]): Promise<void> => {
    for (const file of files) {
      const image = await prepareImage(file);
      const excess = imageProblem([...sent, ...current.current], image);
      if (excess !== null) throw new UnusableImage(excess);
      set([...current.current, image]);
    }
  };

  return {
    images,
    isPreparing: preparing > 0,
    problem,
    add(files) {
      setProblem(refusal);
      if (refusal !== null || files.length === 0) return;
      setPreparing((count) => count + 1);
      attach(files)
        .catch((error: unknown) => setProblem(error instanceof UnusableImage ? error.message : 'The image could not be prepared.'))
        .finally(() => setPreparing((count) => count - 1));
    },
    remove(index) {
      setProblem(null);
      set(current.current.filter((_, at) => at !== index));
    },
    clear() {
      setProblem(null);
      set([]);
    },
  };
}

/** Image files in the clipboard. Ignores the picture that spreadsheets and word processors add to copied text. */
export function pastedImages({ types, files }: Pick<DataTransfer, 'types' | 'files'>): readonly File[] {
  if (types.includes('text/plain') && types.includes('text/html')) return [];
  return [...files].filter(({ type }) => type.startsWith('image/'));
}
