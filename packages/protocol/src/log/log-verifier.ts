/**
 * `LogVerifier` verifies the transparency log, for clients, agents and the command line of the verifier.
 *
 * Checkpoints must be fresh and signed by the log and enough witnesses. Entries must be in the tree. Of two trees that the caller or
 * another party saw, the larger must extend the smaller.
 */
import Type, { type Static } from 'typebox';
import { equalBytes, fromHex, toHex } from '../bytes.js';
import { MillisecondsSchema, Sha256HexSchema } from '../ids.js';
import { type OpenedCheckpoint, openCheckpoint } from './checkpoint.js';
import { type LogCrypto, LogFormatError } from './crypto.js';
import {
  consistencyProof,
  HASH_BYTES,
  inclusionProof,
  leafHash,
  MAX_PROOF_HASHES,
  type ReadSubtree,
  verifyConsistency,
  verifyInclusion,
} from './merkle-tree.js';
import { type NoteKey, parseNoteKey } from './signed-note.js';
import { subtreesFromTiles, type TileId } from './tiles.js';

/** Newest checkpoint that a client verified, as JSON to store between runs. */
export const StoredCheckpointSchema = Type.Object(
  {
    origin: Type.String({ minLength: 1, maxLength: 1024 }),
    size: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
    root: Sha256HexSchema,
    /** Time in the log's cosignature, in milliseconds. */
    signed_at: MillisecondsSchema,
  },
  { additionalProperties: false },
);
export type StoredCheckpoint = Static<typeof StoredCheckpointSchema>;

export interface LogPolicy {
  /** Verifier key of the log, type Ed25519. */
  readonly key: string;
  /** Verifier keys of witnesses, type cosignature/v1. Empty: no witnesses are required. */
  readonly witnesses: readonly string[];
  /** Minimum number of these witnesses with a fresh cosignature. */
  readonly minCosignatures: number;
  /** Maximum age of the signatures of the log and of the required witnesses, in milliseconds. */
  readonly maxAgeMs: number;
}

/** `stale`: too old. `split_view`: a signature, proof or cosignature is missing or wrong, or the log showed another history before. */
export type LogRefusalCode = 'stale' | 'split_view';

export type CheckpointVerdict =
  | {
      readonly ok: true;
      readonly checkpoint: OpenedCheckpoint;
      /** Store in place of the previous checkpoint. */
      readonly stored: StoredCheckpoint;
    }
  | LogRefusal;

export interface LogRefusal {
  readonly ok: false;
  readonly code: LogRefusalCode;
  readonly reason: string;
}

export interface LoggedLeaf {
  /** Signed note. */
  readonly checkpoint: string;
  /** Bytes of the entry (`encodeLogEntry`). */
  readonly entry: Uint8Array;
  readonly leafIndex: number;
  readonly inclusionProof: readonly Uint8Array[];
}

/** Size and root of a verified tree. */
export type LogTree = Pick<OpenedCheckpoint, 'size' | 'root'>;

/** Tolerance for clocks that differ, in milliseconds. */
export const MAX_CLOCK_SKEW_MS = 120_000;

export class LogVerifier {
  readonly #crypto: LogCrypto;
  readonly #policy: LogPolicy;
  readonly #key: NoteKey;
  readonly #witnesses: readonly NoteKey[];
  readonly #readTile: (tile: TileId) => Promise<Uint8Array>;
  /** Cached subtrees of the tree verified last, because proofs within one tree share tiles. */
  #subtrees: { readonly tree: LogTree; readonly read: ReadSubtree } | null = null;

  /**
   * @param options `readTile` fetches `tilePath(tile)` below the log's URL prefix. The proofs authenticate the bytes.
   * @throws {LogFormatError} A key is malformed or of the wrong type, or two witnesses have the same key.
   * @throws {RangeError} `minCosignatures` is larger than the number of witnesses.
   */
  constructor(options: {
    readonly crypto: LogCrypto;
    readonly policy: LogPolicy;
    readonly readTile: (tile: TileId) => Promise<Uint8Array>;
  }) {
    const { crypto, policy, readTile } = options;
    this.#crypto = crypto;
    this.#policy = policy;
    this.#readTile = readTile;
    this.#key = parseNoteKey(crypto.sha256, policy.key);
    this.#witnesses = policy.witnesses.map((text) => parseNoteKey(crypto.sha256, text));
    if (this.#key.type !== 'ed25519') throw new LogFormatError('the key of the log is not an Ed25519 key');
    if (this.#witnesses.some(({ type }) => type !== 'cosignature')) throw new LogFormatError('a key of a witness is not a cosignature key');
    if (new Set(this.#witnesses.map(({ publicKey }) => toHex(publicKey))).size < this.#witnesses.length) {
      throw new LogFormatError('two witnesses have the same key');
    }
    if (policy.minCosignatures > this.#witnesses.length) throw new RangeError('minCosignatures is larger than the number of witnesses');
  }

  /**
   * Verifies a checkpoint, and that its tree contains the leaf. Rejects only if `readTile` rejects.
   *
   * @param stored Newest checkpoint of an earlier verification; null: none.
   * @param now Milliseconds since 1970.
   */
  async verify(leaf: LoggedLeaf, stored: StoredCheckpoint | null, now: number): Promise<CheckpointVerdict> {
    const verdict = await this.verifyCheckpoint(leaf.checkpoint, stored, now);
    if (!verdict.ok) return verdict;
    const { sha256 } = this.#crypto;
    const { size, root } = verdict.checkpoint;
    const { leafIndex: index, inclusionProof: proof } = leaf;
    const isProof = proof.length <= MAX_PROOF_HASHES && proof.every((hash) => hash.length === HASH_BYTES);
    const isIncluded = isProof && verifyInclusion(sha256, { leafHash: leafHash(sha256, leaf.entry), index, size, root, proof });
    return isIncluded ? verdict : refused('split_view', 'the proof does not lead from the entry to the checkpoint');
  }

  /** Like {@link verify}, without a leaf. */
  async verifyCheckpoint(note: string, stored: StoredCheckpoint | null, now: number): Promise<CheckpointVerdict> {
    let checkpoint: OpenedCheckpoint;
    try {
      checkpoint = openCheckpoint(this.#crypto, note, this.#key, this.#witnesses);
    } catch (error) {
      if (error instanceof LogFormatError) return refused('split_view', error.message);
      throw error;
    }
    const { maxAgeMs, minCosignatures } = this.#policy;
    const isFresh = (signedAt: number): boolean => signedAt >= now - maxAgeMs - MAX_CLOCK_SKEW_MS;
    const isInFuture = (signedAt: number): boolean => signedAt > now + MAX_CLOCK_SKEW_MS;
    if (isInFuture(checkpoint.signedAt)) return refused('split_view', 'the checkpoint is signed in the future');
    if (!isFresh(checkpoint.signedAt)) return refused('stale', 'the checkpoint is too old');
    if (checkpoint.cosignatures.length < minCosignatures) {
      return refused('split_view', `${checkpoint.cosignatures.length} of ${minCosignatures} required witnesses signed the checkpoint`);
    }
    // A cosignature of the future would stay fresh for as long as its clock is ahead.
    const cosignatures = checkpoint.cosignatures.filter(({ signedAt }) => !isInFuture(signedAt));
    if (cosignatures.length < minCosignatures) return refused('split_view', 'the cosignatures of witnesses are signed in the future');
    if (cosignatures.filter(({ signedAt }) => isFresh(signedAt)).length < minCosignatures) {
      return refused('stale', 'the cosignatures of witnesses are too old');
    }
    return stored === null ? acceptCheckpoint(checkpoint, null) : await this.#compare(checkpoint, stored);
  }

  /** Whether the tree has the entry at this index. Computes the proof from tiles. Rejects only if `readTile` rejects. */
  async includes(entry: Uint8Array, index: number, tree: LogTree): Promise<boolean> {
    const { sha256 } = this.#crypto;
    const { size, root } = tree;
    if (!Number.isSafeInteger(index) || index < 0 || index >= size) return false;
    const hash = leafHash(sha256, entry);
    return this.#withSubtrees(tree, async (read) =>
      verifyInclusion(sha256, { leafHash: hash, index, size, root, proof: await inclusionProof(sha256, read, index, size) }),
    );
  }

  /**
   * Checks that a checkpoint of any age, signed by the log, is consistent with a verified tree.
   *
   * Rejects only if `readTile` rejects.
   */
  async compareCheckpoint(note: string, tree: LogTree): Promise<{ readonly ok: true } | LogRefusal> {
    let other: OpenedCheckpoint;
    try {
      other = openCheckpoint(this.#crypto, note, this.#key, []);
    } catch (error) {
      if (error instanceof LogFormatError) return refused('split_view', error.message);
      throw error;
    }
    const [older, newer] = other.size < tree.size ? [other, tree] : [tree, other];
    return (await this.#isPrefix(older, newer)) ? { ok: true } : refused('split_view', 'the log showed another party another history');
  }

  /** Checks consistency with the stored checkpoint. A log only grows, so a later signed time never has a smaller size. */
  async #compare(checkpoint: OpenedCheckpoint, stored: StoredCheckpoint): Promise<CheckpointVerdict> {
    if (stored.origin !== checkpoint.origin) return refused('split_view', 'the stored checkpoint is of another log');
    if (checkpoint.size < stored.size && checkpoint.signedAt > stored.signed_at) {
      return refused('split_view', 'the log is shorter than at an earlier time');
    }
    const before = { size: stored.size, root: fromHex(stored.root) };
    const [older, newer] = checkpoint.size < stored.size ? [checkpoint, before] : [before, checkpoint];
    const isConsistent = await this.#isPrefix(older, newer);
    return isConsistent ? acceptCheckpoint(checkpoint, stored) : refused('split_view', 'the log showed this client another history before');
  }

  async #isPrefix(older: LogTree, newer: LogTree): Promise<boolean> {
    const { sha256 } = this.#crypto;
    if (older.size === newer.size) return equalBytes(older.root, newer.root);
    const [oldSize, oldRoot, newSize, newRoot] = [older.size, older.root, newer.size, newer.root];
    return this.#withSubtrees(newer, async (read) =>
      verifyConsistency(sha256, { oldSize, oldRoot, newSize, newRoot, proof: await consistencyProof(sha256, read, oldSize, newSize) }),
    );
  }

  /** Runs `verify` with cached subtrees. After a failure, drops the cache, so that the next call reads the tiles again. */
  async #withSubtrees(tree: LogTree, verify: (read: ReadSubtree) => Promise<boolean>): Promise<boolean> {
    const current = this.#subtrees;
    const isSame = current !== null && current.tree.size === tree.size && equalBytes(current.tree.root, tree.root);
    const subtrees = isSame ? current : { tree, read: subtreesFromTiles(this.#crypto.sha256, tree.size, this.#readTile) };
    this.#subtrees = subtrees;
    let isVerified = false;
    try {
      isVerified = await verify(subtrees.read);
    } catch (error) {
      // A tile of the wrong length fails the verification.
      if (!(error instanceof LogFormatError)) throw error;
    } finally {
      if (!isVerified && this.#subtrees === subtrees) this.#subtrees = null;
    }
    return isVerified;
  }
}

function acceptCheckpoint(checkpoint: OpenedCheckpoint, stored: StoredCheckpoint | null): CheckpointVerdict {
  const { origin, size, root, signedAt } = checkpoint;
  const isNewer = stored === null || size > stored.size || (size === stored.size && signedAt > stored.signed_at);
  return { ok: true, checkpoint, stored: isNewer ? { origin, size, root: toHex(root), signed_at: signedAt } : stored };
}

function refused(code: LogRefusalCode, reason: string): LogRefusal {
  return { ok: false, code, reason };
}
