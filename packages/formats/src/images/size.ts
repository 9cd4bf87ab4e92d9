/** Which size an image request comes to at a model. Coordinator and provider read it the same way. */
import type { ImageSize } from '../request.js';

/** What the specification says where the client names none. */
const DEFAULT_SIZE = '1024x1024';

/**
 * The size as `<width>x<height>`, or null when the model does not make it. `sizes` are those that it makes, its own first. Who
 * names no size gets 1024x1024, or the model's own size where it does not make that.
 */
export function imageSizeOf(wanted: ImageSize, sizes: readonly string[]): string | null {
  if (wanted === 'auto') return sizes[0] ?? null;
  if (wanted === null) return sizes.includes(DEFAULT_SIZE) ? DEFAULT_SIZE : (sizes[0] ?? null);
  return sizes.includes(wanted) ? wanted : null;
}

/** Width and height in pixels of `<width>x<height>`. */
export function pixelsOf(size: string): { readonly width: number; readonly height: number } {
  const [width, height] = size.split('x').map(Number);
  if (width === undefined || height === undefined) throw new RangeError('a size is <width>x<height>');
  return { width, height };
}
