/**
 * `prepareImage`: decodes an image file in the browser, scales the image down and encodes it again. The new file lacks metadata such as the
 * location of a photo.
 */
import { toBase64 } from '@inference/protocol';
import type { QuestionImage } from './question-image.js';

/** Maximum width and height in pixels. */
const MAX_SIDE = 2048;
/** Maximum size of a file that is decoded. */
const MAX_FILE_BYTES = 64 * 1024 * 1024;
/** Maximum size of an image encoded as PNG. Larger ones are encoded as JPEG instead. */
const MAX_PNG_BYTES = 1024 * 1024;
const JPEG_QUALITY = 0.85;

/** Error of an image that cannot be attached. `message` is for the user. */
export class UnusableImage extends Error {}

/** Rejects with {@link UnusableImage}. */
export async function prepareImage(file: File): Promise<QuestionImage> {
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
