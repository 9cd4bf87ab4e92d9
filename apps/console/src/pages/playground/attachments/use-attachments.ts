/** `useAttachments`: images that the user attaches to the message that is being written. */

import { toBase64 } from '@inference/protocol';
import { useRef, useState } from 'react';
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

  /** Throws {@link UnusableImage} at the first file that cannot be attached. Earlier files stay attached. */
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

/** Maximum width and height in pixels. */
const MAX_SIDE = 2048;
/** Maximum size of a file that is decoded. */
const MAX_FILE_BYTES = 64 * 1024 * 1024;
/** Maximum size of an image encoded as PNG. Larger ones are encoded as JPEG instead. */
const MAX_PNG_BYTES = 1024 * 1024;
const JPEG_QUALITY = 0.85;

/** Error of an image that cannot be attached. `message` is for the user. */
class UnusableImage extends Error {}

/**
 * Decodes an image file, scales large images down and encodes the image again, without metadata such as the location of a photo. Rejects
 * with {@link UnusableImage}.
 */
async function prepareImage(file: File): Promise<QuestionImage> {
  if (file.size > MAX_FILE_BYTES) throw new UnusableImage(`${file.name} has more than ${MAX_FILE_BYTES / 1024 / 1024} MB.`);
  const bitmap = await createImageBitmap(file).catch(() => null);
  if (bitmap === null) throw new UnusableImage(`${file.name} is not an image that this browser can read.`);
  try {
    return { name: file.name, dataUri: await encodeImage(bitmap, file.type === 'image/jpeg') };
  } finally {
    bitmap.close();
  }
}

/** Size within the maximum, with the proportions of the image. */
export function scaledSize(width: number, height: number): { readonly width: number; readonly height: number } {
  const scale = Math.min(1, MAX_SIDE / Math.max(width, height));
  return { width: Math.max(1, Math.round(width * scale)), height: Math.max(1, Math.round(height * scale)) };
}

async function encodeImage(bitmap: ImageBitmap, isJpeg: boolean): Promise<string> {
  const { width, height } = scaledSize(bitmap.width, bitmap.height);
  const canvas = Object.assign(document.createElement('canvas'), { width, height });
  const context = canvas.getContext('2d');
  if (context === null) throw new UnusableImage('This browser cannot prepare images.');
  context.imageSmoothingQuality = 'high';
  // JPEG has no transparency. Without a background, transparent pixels would turn black.
  context.fillStyle = 'white';
  context.fillRect(0, 0, width, height);
  context.drawImage(bitmap, 0, 0, width, height);
  const png = isJpeg ? null : await blobOf(canvas, 'image/png');
  const blob = png !== null && png.size <= MAX_PNG_BYTES ? png : await blobOf(canvas, 'image/jpeg');
  return `data:${blob.type};base64,${toBase64(new Uint8Array(await blob.arrayBuffer()))}`;
}

function blobOf(canvas: HTMLCanvasElement, type: 'image/png' | 'image/jpeg'): Promise<Blob> {
  return new Promise((resolve, reject) => {
    const done = (blob: Blob | null): void => {
      if (blob === null) reject(new UnusableImage('The image is too large for this browser.'));
      else resolve(blob);
    };
    canvas.toBlob(done, type, JPEG_QUALITY);
  });
}
