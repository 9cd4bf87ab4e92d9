/** The `Range` header of a request (RFC 9110 section 14.1.2), for what is served whole from memory. */

export interface ByteRange {
  /** Offsets of the first and the last byte. */
  readonly first: number;
  readonly last: number;
}

const ONE_RANGE = /^bytes=(?:(\d{1,15})-(\d{1,15})?|-(\d{1,15}))$/i;

/**
 * The range that is wanted of `length` bytes. Null: all of it, because nothing was asked for, or something that may be ignored:
 * another unit, several ranges, or none that can be read.
 */
export function parseRange(header: string | undefined, length: number): ByteRange | 'unsatisfiable' | null {
  const [matched, from, to, suffix] = ONE_RANGE.exec(header?.trim() ?? '') ?? [];
  if (matched === undefined) return null;
  if (suffix !== undefined) {
    const bytes = Math.min(Number(suffix), length);
    return bytes === 0 ? 'unsatisfiable' : { first: length - bytes, last: length - 1 };
  }
  const first = Number(from);
  if (to !== undefined && Number(to) < first) return null;
  if (first >= length) return 'unsatisfiable';
  return { first, last: to === undefined ? length - 1 : Math.min(Number(to), length - 1) };
}
