/**
 * What no provider may put into a stream: comments, which are the coordinator's and no part of what is signed, and carriage
 * returns, which end lines as well. With either, the client could not compute the hash again that the provider signed (design:
 * who renders, who relays), and would pay for an answer that does not verify.
 */

const LF = 0x0a;
const CR = 0x0d;
const COLON = 0x3a;
const COMMENT = Buffer.from('\n:');

/** Looks through a stream piece by piece, however its lines are cut. */
export class StreamFraming {
  #atLineStart = true;

  /** Whether this piece holds, or completes, what may not be there. */
  isBrokenBy(piece: Uint8Array): boolean {
    if (piece.length === 0) return false;
    const bytes = Buffer.from(piece.buffer, piece.byteOffset, piece.length);
    const broken = (this.#atLineStart && bytes[0] === COLON) || bytes.includes(CR) || bytes.includes(COMMENT);
    this.#atLineStart = bytes[bytes.length - 1] === LF;
    return broken;
  }
}
