/** Reference implementation of Merkle trees: the recursive definitions of RFC 6962 section 2.1. */
import { createHash } from 'node:crypto';

function hash(...parts: readonly Uint8Array[]): Uint8Array {
  const digest = createHash('sha256');
  for (const part of parts) digest.update(part);
  return new Uint8Array(digest.digest());
}

/** Largest power of two smaller than `count`. */
function split(count: number): number {
  return 2 ** Math.ceil(Math.log2(count) - 1);
}

/** MTH(D[n]). */
export function naiveRoot(entries: readonly Uint8Array[]): Uint8Array {
  if (entries.length === 0) return hash();
  if (entries.length === 1) return hash(Uint8Array.of(0), entries[0] as Uint8Array);
  const k = split(entries.length);
  return hash(Uint8Array.of(1), naiveRoot(entries.slice(0, k)), naiveRoot(entries.slice(k)));
}

/** PATH(m, D[n]). */
export function naivePath(m: number, entries: readonly Uint8Array[]): Uint8Array[] {
  if (entries.length === 1) return [];
  const k = split(entries.length);
  return m < k
    ? [...naivePath(m, entries.slice(0, k)), naiveRoot(entries.slice(k))]
    : [...naivePath(m - k, entries.slice(k)), naiveRoot(entries.slice(0, k))];
}

/** PROOF(m, D[n]) for 0 < m < n, as SUBPROOF(m, D[n], true). */
export function naiveConsistency(m: number, entries: readonly Uint8Array[]): Uint8Array[] {
  return subproof(m, entries, true);
}

function subproof(m: number, entries: readonly Uint8Array[], isWhole: boolean): Uint8Array[] {
  if (m === entries.length) return isWhole ? [] : [naiveRoot(entries)];
  const k = split(entries.length);
  return m <= k
    ? [...subproof(m, entries.slice(0, k), isWhole), naiveRoot(entries.slice(k))]
    : [...subproof(m - k, entries.slice(k), false), naiveRoot(entries.slice(0, k))];
}
