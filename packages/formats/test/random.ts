/** Seeded random texts and pieces for property tests. A seed reproduces a failure. */
import { SeededRandom } from '../../../test/support/seeded-random.js';

export class Random extends SeededRandom {
  /** Concatenation of up to `max` random fragments. */
  text(fragments: readonly string[], max: number): string {
    let text = '';
    for (let left = this.below(max + 1); left > 0; left--) text += this.pick(fragments);
    return text;
  }

  /** Splits a text into pieces of 0 to `maxLength` UTF-16 units. A split may divide a surrogate pair. */
  cut(text: string, maxLength: number): string[] {
    const pieces: string[] = [];
    for (let at = 0; at < text.length; ) {
      const length = this.below(maxLength + 1);
      pieces.push(text.slice(at, at + length));
      at += length;
    }
    return pieces;
  }
}
