/** Seeded texts and their pieces for property tests, so that a failure can be run again. */
import { SeededRandom } from '../../../test/support/seeded-random.js';

export class Random extends SeededRandom {
  /** Concatenation of up to `max` random fragments. */
  text(fragments: readonly string[], max: number): string {
    let text = '';
    for (let left = this.below(max + 1); left > 0; left--) text += this.pick(fragments);
    return text;
  }

  /** The text cut into pieces of 0 to `maxLength` UTF-16 units. A cut may split a surrogate pair. */
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
