/**
 * `LogVerifier` checks that the transparency log contains what the coordinator shows to this client.
 *
 * A keyset lists all providers' sealing keys and is numbered by its epoch. An entry is content of the log; a leaf is the entry's
 * place in the Merkle tree.
 */
import {
  type E2eCrypto,
  type E2eKeyset,
  type E2eLogHead,
  encodeLogEntry,
  fromBase64OrNull,
  fromHex,
  keysetLeafBytes,
  keysetLogEntry,
  type LoggedLeaf,
  type LogTree,
  lazyValidator,
  providerLogEntry,
  Sha256HexSchema,
  toHex,
} from '@inference/protocol';
import Type, { type Static } from 'typebox';
import { E2ERefused } from '../refusal.js';

export type { LoggedLeaf, LogTree };

export interface AcceptedKeyset {
  /** Size and root of the verified tree, which requests name in their context. */
  readonly head: E2eLogHead;
  /** Store this text, and pass it to the next verification. */
  readonly state: string;
}

export interface LogVerifier {
  /**
   * Verifies that a fresh checkpoint covers the keyset and is consistent with earlier checkpoints.
   *
   * @param state Result of the last verification; null: none.
   * @param now Milliseconds since 1970.
   * @throws {E2ERefused} `stale` or `split_view`.
   * @throws {Error} `state` is damaged. Errors of the {@link CheckpointVerifier} pass through.
   */
  verifyKeyset(keyset: E2eKeyset, state: string | null, now: number): Promise<AcceptedKeyset>;
  /**
   * Verifies that a leaf is the entry of a provider's enclave key (65 bytes x963).
   *
   * @throws {E2ERefused} `split_view`.
   */
  verifyProvider(
    provider: { readonly providerId: string; readonly enclaveKey: Uint8Array },
    logIndex: number,
    head: E2eLogHead,
  ): Promise<void>;
  /**
   * Verifies that a provider's checkpoint is consistent with the tree of a keyset. The checkpoint may be old.
   *
   * @param note The checkpoint that the provider got from the coordinator, as a signed note.
   * @throws {E2ERefused} `split_view`.
   */
  compareCheckpoint(note: string, head: E2eLogHead): Promise<void>;
  /**
   * Returns when this client first remembered a tree that contains the leaf, in milliseconds; null: never.
   *
   * @throws {Error} `state` is damaged.
   */
  loggedBefore(logIndex: number, state: string | null): number | null;
}

/**
 * Verifies checkpoints (C2SP tlog-checkpoint) and proofs (RFC 6962).
 *
 * @typeParam Stored Verified checkpoint that the caller keeps. Must survive `JSON.stringify`.
 */
export interface CheckpointVerifier<Stored> {
  verify(leaf: LoggedLeaf, stored: Stored | null, now: number): Promise<CheckpointVerdict<Stored>>;
  /** Whether a verified tree has the entry at this index. */
  includes(entry: Uint8Array, index: number, tree: LogTree): Promise<boolean>;
  /** Whether another party's checkpoint, a signed note of any age, is consistent with a verified tree. */
  compareCheckpoint(note: string, tree: LogTree): Promise<{ readonly ok: true } | { readonly ok: false; readonly reason: string }>;
}

export type CheckpointVerdict<Stored> =
  | { readonly ok: true; readonly checkpoint: LogTree; readonly stored: Stored }
  | { readonly ok: false; readonly code: 'stale' | 'split_view'; readonly reason: string };

/** Maximum remembered tree heads. */
const MAX_HEADS = 64;
/** Minimum time between two remembered tree heads, in milliseconds. */
const HEAD_INTERVAL_MS = 6 * 60 * 60_000;

const StateSchema = Type.Object({
  stored: Type.Unknown(),
  /** Remembered trees, oldest first: at most one per `HEAD_INTERVAL_MS`. */
  heads: Type.Array(Type.Object({ size: Type.Integer({ minimum: 0 }), root: Sha256HexSchema, accepted_at: Type.Integer({ minimum: 0 }) }), {
    maxItems: MAX_HEADS,
  }),
});
type State = Static<typeof StateSchema>;
const stateValidator = lazyValidator(StateSchema);

/** Creates a {@link LogVerifier}. Entries have no times, so their age counts from the first remembered tree with the entry. */
export function logVerifierFrom<Stored>(crypto: Pick<E2eCrypto, 'sha256'>, verifier: CheckpointVerifier<Stored>): LogVerifier {
  return {
    async verifyKeyset(keyset, text, now) {
      const { log } = keyset;
      if (log === undefined) throw new E2ERefused('split_view', 'The keyset is not in a transparency log.');
      const state = stateOf(text);
      const leaf = {
        checkpoint: log.checkpoint,
        entry: encodeLogEntry(keysetLogEntry(crypto.sha256, keyset.epoch, keysetLeafBytes(keyset))),
        leafIndex: log.leaf_index,
        // An empty hash fails the proof, so malformed base64 is refused as `split_view`.
        inclusionProof: log.inclusion_proof.map((hash) => fromBase64OrNull(hash) ?? new Uint8Array()),
      };
      // `stored` is an earlier result of the same verifier, so the cast holds.
      const verdict = await verifier.verify(leaf, (state?.stored ?? null) as Stored | null, now);
      if (!verdict.ok) throw new E2ERefused(verdict.code, `The transparency log is refused: ${verdict.reason}.`);
      const head = { size: verdict.checkpoint.size, root: toHex(verdict.checkpoint.root) };
      const next: State = { stored: verdict.stored, heads: headsAfter(state?.heads ?? [], head, now) };
      return { head, state: JSON.stringify(next) };
    },
    async verifyProvider({ providerId, enclaveKey }, logIndex, head) {
      const entry = encodeLogEntry(providerLogEntry(crypto.sha256, enclaveKey));
      if (await verifier.includes(entry, logIndex, treeOf(head))) return;
      throw new E2ERefused('split_view', `Provider ${providerId}: leaf ${logIndex} of the transparency log is not the entry of its key.`);
    },
    async compareCheckpoint(note, head) {
      const verdict = await verifier.compareCheckpoint(note, treeOf(head));
      if (!verdict.ok)
        throw new E2ERefused('split_view', `The provider's checkpoint of the transparency log is refused: ${verdict.reason}.`);
    },
    loggedBefore(logIndex, text) {
      return stateOf(text)?.heads.find(({ size }) => size > logIndex)?.accepted_at ?? null;
    },
  };
}

function treeOf({ size, root }: E2eLogHead): LogTree {
  return { size, root: fromHex(root) };
}

/** Appends a head if the tree grew and the interval has passed. The first head stays, because it dates the oldest entries. */
function headsAfter(heads: State['heads'], { size, root }: E2eLogHead, now: number): State['heads'] {
  const last = heads.at(-1);
  if (last !== undefined && (last.size >= size || now - last.accepted_at < HEAD_INTERVAL_MS)) return heads;
  const next = [...heads, { size, root, accepted_at: now }];
  return next.length > MAX_HEADS ? [...next.slice(0, 1), ...next.slice(2)] : next;
}

function stateOf(text: string | null): State | null {
  if (text === null) return null;
  const value: unknown = JSON.parse(text);
  if (!stateValidator().Check(value)) throw new Error('The stored state of the transparency log is not valid. Restore or delete it.');
  return value;
}
