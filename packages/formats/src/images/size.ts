/** Resolves the requested size of a generated image for a given model. */
import type { ImageSize } from '../request.js';

/** Size if the request names none and the model supports it. */
const DEFAULT_SIZE = '1024x1024';

/**
 * The size as `<width>x<height>`; null if the model does not support it.
 *
 * `auto` is the model's default. No size is 1024x1024 if supported, else the model's default.
 *
 * @param sizes Supported sizes, the default first.
 */
export function imageSizeOf(requested: ImageSize, sizes: readonly string[]): string | null {
  if (requested === 'auto') return sizes[0] ?? null;
  if (requested === null) return sizes.includes(DEFAULT_SIZE) ? DEFAULT_SIZE : (sizes[0] ?? null);
  return sizes.includes(requested) ? requested : null;
}

/** Parses `<width>x<height>`, in pixels. */
export function pixelsOf(size: string): { readonly width: number; readonly height: number } {
  const [width, height] = size.split('x').map(Number);
  if (width === undefined || height === undefined) throw new RangeError('a size is <width>x<height>');
  return { width, height };
}
