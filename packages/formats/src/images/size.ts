/** Size of a requested image for a given model. Coordinator and provider share this rule. */
import type { ImageSize } from '../request.js';

/** Default of the specification. */
const DEFAULT_SIZE = '1024x1024';

/**
 * The size as `<width>x<height>`; null if unsupported. Without a requested size: 1024x1024 if supported, else the model's default.
 *
 * @param sizes Supported sizes, the default first.
 */
export function imageSizeOf(requested: ImageSize, sizes: readonly string[]): string | null {
  if (requested === 'auto') return sizes[0] ?? null;
  if (requested === null) return sizes.includes(DEFAULT_SIZE) ? DEFAULT_SIZE : (sizes[0] ?? null);
  return sizes.includes(requested) ? requested : null;
}

/** Width and height in pixels of `<width>x<height>`. */
export function pixelsOf(size: string): { readonly width: number; readonly height: number } {
  const [width, height] = size.split('x').map(Number);
  if (width === undefined || height === undefined) throw new RangeError('a size is <width>x<height>');
  return { width, height };
}
