/** `imageFileName`: file name for the download of a generated image. */
import type { ImageRequest } from '../requests/image-request.js';

const MAX_WORDS_LENGTH = 40;
const EXTENSIONS: Readonly<Record<string, string>> = { 'image/png': 'png', 'image/jpeg': 'jpg', 'image/webp': 'webp' };

/** Name such as `a-red-circle-seed-7-2.png`: words of the prompt, seed, and number among several images. `type`: media type. */
export function imageFileName({ prompt, seed }: Pick<ImageRequest, 'prompt' | 'seed'>, type: string, number: number | null): string {
  const words = prompt.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  let name = '';
  for (const word of words) {
    const longer = name === '' ? word.slice(0, MAX_WORDS_LENGTH) : `${name}-${word}`;
    if (longer.length > MAX_WORDS_LENGTH) break;
    name = longer;
  }
  const parts = [name === '' ? 'image' : name, seed === null ? null : `seed-${seed}`, number].filter((part) => part !== null);
  return `${parts.join('-')}.${EXTENSIONS[type] ?? 'bin'}`;
}
