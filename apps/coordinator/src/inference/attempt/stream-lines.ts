/**
 * What a provider may not put into a stream, because it is no part of what clients verify: comments, which are the coordinator's and
 * are left out of the hash, and carriage returns, which end a line for some readers and not for others (design: who renders, who
 * relays). No renderer makes either; JSON escapes them. Bytes may be split anywhere. Pure.
 */
const LF = 0x0a;
const CR = 0x0d;
const COLON = 0x3a;
const COMMENT = Buffer.from('\n:');

export class StreamLines {
  #last = LF;

  /** Whether these bytes, which come next, may stand in a stream. */
  take(bytes: Uint8Array): boolean {
    const last = bytes.at(-1);
    if (last === undefined) return true;
    const beginsComment = this.#last === LF && bytes[0] === COLON;
    this.#last = last;
    return !beginsComment && !has(bytes, CR) && !has(bytes, COMMENT);
  }
}

/** Buffer's search, on bytes that need not be one: it looks at many at once. */
function has(bytes: Uint8Array, what: number | Buffer): boolean {
  return Buffer.prototype.indexOf.call(bytes, what) !== -1;
}
