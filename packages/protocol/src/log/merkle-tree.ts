/** Merkle tree of RFC 6962 section 2.1: hashes, proofs, and verification by RFC 9162 sections 2.1.3.2 and 2.1.4.2. */
import { concatBytes, equalBytes } from '../bytes.js';
import type { Sha256 } from './crypto.js';

export const HASH_BYTES = 32;
/** Longest proof in a tree of at most 2^53 leaves. */
export const MAX_PROOF_HASHES = 54;

const LEAF_PREFIX = Uint8Array.of(0x00);
const NODE_PREFIX = Uint8Array.of(0x01);

export function leafHash(sha256: Sha256, entry: Uint8Array): Uint8Array {
  return sha256(concatBytes(LEAF_PREFIX, entry));
}

export function nodeHash(sha256: Sha256, left: Uint8Array, right: Uint8Array): Uint8Array {
  return sha256(concatBytes(NODE_PREFIX, left, right));
}

/** Reads the hash of a complete subtree: 2^level leaves, starting at leaf `index` * 2^level. */
export type ReadSubtree = (level: number, index: number) => Promise<Uint8Array>;

/** Root hash of the first `size` leaves (MTH, RFC 6962 section 2.1). */
export function treeRoot(sha256: Sha256, read: ReadSubtree, size: number): Promise<Uint8Array> {
  return rangeHash(sha256, read, 0, size);
}

/** Inclusion proof of the leaf at `index` in the tree of `size` leaves, lowest hash first (PATH, RFC 6962 section 2.1.1). */
export async function inclusionProof(sha256: Sha256, read: ReadSubtree, index: number, size: number): Promise<Uint8Array[]> {
  if (index < 0 || index >= size) throw new RangeError('the index lies outside the tree');
  const proof: Uint8Array[] = [];
  let [begin, end] = [0, size];
  while (end - begin > 1) {
    const middle = begin + largestPowerBelow(end - begin);
    if (index < middle) {
      proof.push(await rangeHash(sha256, read, middle, end));
      end = middle;
    } else {
      proof.push(await rangeHash(sha256, read, begin, middle));
      begin = middle;
    }
  }
  return proof.reverse();
}

/** Consistency proof between the trees of `oldSize` and `newSize` leaves (PROOF, RFC 6962 section 2.1.2). */
export async function consistencyProof(sha256: Sha256, read: ReadSubtree, oldSize: number, newSize: number): Promise<Uint8Array[]> {
  if (oldSize < 0 || oldSize > newSize) throw new RangeError('the old size is larger than the new size');
  if (oldSize === 0 || oldSize === newSize) return [];
  const proof: Uint8Array[] = [];
  let [begin, end] = [0, newSize];
  while (end !== oldSize) {
    const middle = begin + largestPowerBelow(end - begin);
    if (oldSize <= middle) {
      proof.push(await rangeHash(sha256, read, middle, end));
      end = middle;
    } else {
      proof.push(await rangeHash(sha256, read, begin, middle));
      begin = middle;
    }
  }
  // A subtree that begins at 0 is the old tree, whose root the verifier knows.
  if (begin !== 0) proof.push(await rangeHash(sha256, read, begin, end));
  return proof.reverse();
}

interface Inclusion {
  readonly leafHash: Uint8Array;
  readonly index: number;
  readonly size: number;
  readonly root: Uint8Array;
  readonly proof: readonly Uint8Array[];
}

/** Whether the proof leads from the leaf to the root (RFC 9162 section 2.1.3.2). */
export function verifyInclusion(sha256: Sha256, { leafHash: leaf, index, size, root, proof }: Inclusion): boolean {
  if (index < 0 || index >= size) return false;
  let [node, lastNode] = [index, size - 1];
  let hash = leaf;
  for (const sibling of proof) {
    if (lastNode === 0) return false;
    if (isOdd(node) || node === lastNode) {
      hash = nodeHash(sha256, sibling, hash);
      for (; !isOdd(node) && node !== 0; node /= 2) lastNode = halve(lastNode);
    } else {
      hash = nodeHash(sha256, hash, sibling);
    }
    [node, lastNode] = [halve(node), halve(lastNode)];
  }
  return lastNode === 0 && equalBytes(hash, root);
}

interface Consistency {
  readonly oldSize: number;
  readonly oldRoot: Uint8Array;
  readonly newSize: number;
  readonly newRoot: Uint8Array;
  readonly proof: readonly Uint8Array[];
}

/** Whether the new tree extends the old one (RFC 9162 section 2.1.4.2). Every tree extends the empty tree. */
export function verifyConsistency(sha256: Sha256, { oldSize, oldRoot, newSize, newRoot, proof }: Consistency): boolean {
  if (oldSize < 0 || oldSize > newSize) return false;
  if (oldSize === newSize) return proof.length === 0 && equalBytes(oldRoot, newRoot);
  if (oldSize === 0) return proof.length === 0 && equalBytes(oldRoot, sha256(new Uint8Array()));
  const [first, ...siblings] = isPowerOfTwo(oldSize) ? [oldRoot, ...proof] : proof;
  if (first === undefined) return false;
  let [node, lastNode] = [oldSize - 1, newSize - 1];
  for (; isOdd(node); node = halve(node)) lastNode = halve(lastNode);
  let [oldHash, newHash] = [first, first];
  for (const sibling of siblings) {
    if (lastNode === 0) return false;
    if (isOdd(node) || node === lastNode) {
      oldHash = nodeHash(sha256, sibling, oldHash);
      newHash = nodeHash(sha256, sibling, newHash);
      for (; !isOdd(node) && node !== 0; node /= 2) lastNode = halve(lastNode);
    } else {
      newHash = nodeHash(sha256, newHash, sibling);
    }
    [node, lastNode] = [halve(node), halve(lastNode)];
  }
  return lastNode === 0 && equalBytes(oldHash, oldRoot) && equalBytes(newHash, newRoot);
}

/** Hash of the leaves in [begin, end). Let 2^n be the leaf count rounded up to a power of two: `begin` is a multiple of 2^n. */
async function rangeHash(sha256: Sha256, read: ReadSubtree, begin: number, end: number): Promise<Uint8Array> {
  const count = end - begin;
  if (count === 0) return sha256(new Uint8Array());
  if (isPowerOfTwo(count)) return read(Math.log2(count), begin / count);
  const middle = begin + largestPowerBelow(count);
  const [left, right] = await Promise.all([rangeHash(sha256, read, begin, middle), rangeHash(sha256, read, middle, end)]);
  return nodeHash(sha256, left, right);
}

/** Largest power of two smaller than `count`, which is at least 2. */
function largestPowerBelow(count: number): number {
  let power = 1;
  while (2 * power < count) power *= 2;
  return power;
}

function isPowerOfTwo(count: number): boolean {
  return count > 0 && largestPowerBelow(2 * count) === count;
}

function isOdd(value: number): boolean {
  return value % 2 === 1;
}

function halve(value: number): number {
  return Math.floor(value / 2);
}
