/**
 * `TransparencyLog`: append-only log of this network (C2SP tlog-tiles). A checkpoint is published once a quorum of witnesses has cosigned
 * it.
 */
import {
  checkpointText,
  consistencyProof,
  type E2eKeysetLog,
  E2eKeysetSchema,
  encodeEntryBundle,
  formatNoteKey,
  formatSignatureLine,
  formatSignedNote,
  fromUtf8,
  inclusionProof,
  keysetLogEntry,
  type LogEntry,
  type LogEntryKind,
  lazyValidator,
  type NoteKey,
  type NoteSignature,
  parseSignatureLines,
  providerLogEntry,
  signNote,
  TILE_WIDTH,
  type TileId,
  tileWidth,
  timeKey,
  toBase64,
  toHex,
  treeRoot,
} from '@inference/protocol';
import { type Ed25519KeyPair, ed25519KeyPairFrom, sha256 } from '@inference/protocol/crypto';
import { BoundedMap } from '@inference/scheduler/bounded-map';
import { LogRepository, type PublishedTree } from '../database/log-repository.js';
import { sharedSecret } from '../database/secret-repository.js';
import type { Database } from '../database/tables.js';
import type { Witness } from './settings.js';
import { verifyCosignature, WitnessClient } from './witness-client.js';

/** Name of the log's private key in `secret-repository`. All coordinators of a database share it. */
export const LOG_KEY_SECRET = 'transparency log key';

/** Tree levels per tile (C2SP tlog-tiles). */
const TILE_HEIGHT = 8;

const MAX_CACHED_PROVIDERS = 10_000;

/** Methods of the log that the keyset of end-to-end mode needs. */
export interface KeysetLog {
  /**
   * Logs a keyset.
   *
   * @param keysetBytes `keysetLeafBytes` of the keyset.
   * @returns Proof for the keyset's member `log`. Null: not published yet, for lack of cosignatures or because of the hourly maximum.
   */
  publish(keysetBytes: Uint8Array): Promise<E2eKeysetLog | null>;
  /**
   * Leaf index of an enclave key (x963). A new key is appended, and published with the next tree.
   *
   * @returns Null if the hourly maximum of providers is reached.
   */
  providerIndex(publicKey: Uint8Array): Promise<ProviderLogIndex | null>;
}

export interface ProviderLogIndex {
  readonly index: number;
  /** Whether the index was known without access to the stored log, which may fail now. */
  readonly isCached: boolean;
}

const keysetEpoch = lazyValidator(E2eKeysetSchema.properties.epoch);

interface TransparencyLogOptions {
  readonly database: Database;
  /** Origin of a new log. */
  readonly origin: string;
  readonly witnesses: readonly Witness[];
  readonly quorum: number;
  /** Called when a witness has cosigned a checkpoint. */
  readonly onCosigned?: (witness: string) => void;
  /** Called when a witness did not cosign a checkpoint. */
  readonly onWitnessFailure: (error: unknown, witness: string) => void;
}

export class TransparencyLog implements KeysetLog {
  readonly #repository: LogRepository;
  readonly #pair: Ed25519KeyPair;
  readonly #key: NoteKey;
  readonly #witnesses: readonly WitnessClient[];
  readonly #options: TransparencyLogOptions;
  /** Leaf indexes by enclave key in hexadecimal. */
  readonly #providerIndexes = new BoundedMap<string, number>(MAX_CACHED_PROVIDERS);
  /** Newest publication by this process. Publications run one after the other. */
  #publishing: Promise<void> = Promise.resolve();

  static async open(options: TransparencyLogOptions): Promise<TransparencyLog> {
    const repository = await LogRepository.open(options.database, sha256, options.origin);
    const pair = ed25519KeyPairFrom(await sharedSecret(options.database, LOG_KEY_SECRET));
    const { origin } = await repository.published();
    return new TransparencyLog(options, repository, pair, origin);
  }

  private constructor(options: TransparencyLogOptions, repository: LogRepository, pair: Ed25519KeyPair, origin: string) {
    this.#options = options;
    this.#repository = repository;
    this.#pair = pair;
    this.#key = { name: origin, type: 'ed25519', publicKey: pair.publicKey };
    this.#witnesses = options.witnesses.map((witness) => new WitnessClient(witness));
  }

  /** Verifier key (C2SP signed-note). */
  get verifierKey(): string {
    return formatNoteKey(sha256, this.#key);
  }

  async publish(keysetBytes: Uint8Array): Promise<E2eKeysetLog | null> {
    const { epoch } = JSON.parse(fromUtf8(keysetBytes)) as { readonly epoch?: unknown };
    if (!keysetEpoch().Check(epoch)) throw new TypeError('the keyset has no epoch');
    const index = await this.append(keysetLogEntry(sha256, epoch, keysetBytes));
    return index === null ? null : await this.inclusionOf(index);
  }

  /**
   * Appends an entry if it is new, and tries to publish the tree.
   *
   * @returns Index of the leaf. Null: the hourly maximum for this kind of entry is reached.
   */
  async append(entry: LogEntry): Promise<number | null> {
    const index = await this.#repository.append(entry);
    await this.refresh();
    return index;
  }

  /**
   * Appends the entries that are new, and tries to publish the tree.
   *
   * @throws Error if some entries exceeded the hourly maximum. Call again later.
   */
  async appendAll(entries: Iterable<LogEntry>): Promise<void> {
    const refused = new Set<LogEntryKind>();
    for (const entry of entries) {
      if (!refused.has(entry.kind) && (await this.#repository.append(entry)) === null) refused.add(entry.kind);
    }
    await this.refresh();
    if (refused.size > 0) throw new Error(`the hourly maximum of log entries is reached: ${[...refused].join(', ')}`);
  }

  async providerIndex(publicKey: Uint8Array): Promise<ProviderLogIndex | null> {
    const key = toHex(publicKey);
    const known = this.#providerIndexes.get(key);
    if (known !== undefined) return { index: known, isCached: true };
    const index = await this.#repository.append(providerLogEntry(sha256, publicKey));
    if (index === null) return null;
    this.#providerIndexes.set(key, index);
    return { index, isCached: false };
  }

  /** Inclusion proof of a leaf in the published tree. Null: the leaf is not published yet. */
  async inclusionOf(leafIndex: number): Promise<E2eKeysetLog | null> {
    const tree = await this.#repository.published();
    if (leafIndex >= tree.size) return null;
    const proof = await inclusionProof(sha256, this.#repository.subtree, leafIndex, tree.size);
    return { checkpoint: this.#checkpointOf(tree), leaf_index: leafIndex, inclusion_proof: proof.map(toBase64) };
  }

  /** The published checkpoint, signed with the current time. */
  async checkpoint(): Promise<string> {
    return this.#checkpointOf(await this.#repository.published());
  }

  async sizes(): Promise<{ readonly appended: number; readonly published: number }> {
    const { size: published } = await this.#repository.published();
    return { appended: await this.#repository.size(), published };
  }

  /** Bytes of a tile or entry bundle of the published tree. Null: not in the tree. */
  async tile({ level, index, width }: TileId): Promise<Uint8Array | null> {
    const { size } = await this.#repository.published();
    if (tileWidth(level, index, size) < width) return null;
    const first = TILE_WIDTH * index;
    return level === 'entries'
      ? encodeEntryBundle(await this.#repository.entries(first, width))
      : Buffer.concat(await this.#repository.subtrees(TILE_HEIGHT * level, first, width));
  }

  /** Publishes all appended leaves, and renews cosignatures. Without a quorum, the tree stays unpublished until a later call. */
  refresh(): Promise<void> {
    const published = this.#publishing.then(() => this.#publish());
    // A failed publication must not block the next one.
    this.#publishing = published.catch(() => {});
    return published;
  }

  async #publish(): Promise<void> {
    const before = await this.#repository.published();
    const size = await this.#repository.size();
    if (size === before.size && this.#witnesses.length === 0) return;
    const root = await treeRoot(sha256, this.#repository.subtree, size);
    const tree: PublishedTree = { ...before, size, root, cosignatures: '' };
    const cosignatures = await this.#requestCosignatures(tree);
    if (size === before.size) cosignatures.push(...this.#olderCosignatures(before, cosignatures));
    if (cosignatures.length < this.#options.quorum) return;
    await this.#repository.publish({ size, root, cosignatures: cosignatures.map(formatSignatureLine).join('') });
  }

  /** Requests cosignatures from all witnesses. Reports failures to `onWitnessFailure`. */
  async #requestCosignatures(tree: PublishedTree): Promise<NoteSignature[]> {
    const { size } = tree;
    const proofFrom = (oldSize: number) => consistencyProof(sha256, this.#repository.subtree, oldSize, size);
    const checkpoint = { note: this.#checkpointOf(tree), size, proofFrom };
    const results = await Promise.allSettled(this.#witnesses.map((witness) => witness.cosign(checkpoint)));
    return results.flatMap((result, index) => {
      const witness = this.#witnesses[index]?.name ?? '';
      if (result.status === 'rejected') {
        this.#options.onWitnessFailure(result.reason, witness);
        return [];
      }
      this.#options.onCosigned?.(witness);
      return [result.value];
    });
  }

  /** Stored cosignatures of the same tree, not dated in the future, by configured witnesses that sent no newer one. */
  #olderCosignatures(tree: PublishedTree, newer: readonly NoteSignature[]): NoteSignature[] {
    if (tree.cosignatures === '') return [];
    const text = checkpointText(tree);
    return parseSignatureLines(tree.cosignatures).filter(
      (signature) =>
        this.#options.witnesses.some(({ key }) => verifyCosignature(text, signature, key)?.isInFuture === false) &&
        !newer.some(({ name, keyId }) => name === signature.name && keyId === signature.keyId),
    );
  }

  #checkpointOf(tree: PublishedTree): string {
    const text = checkpointText(tree);
    const timeSeconds = Math.floor(tree.readAt / 1000);
    const own = [this.#key, timeKey(this.#key)].map((key) => signNote(sha256, key, this.#pair.sign, text, timeSeconds));
    return `${formatSignedNote({ text, signatures: own })}${tree.cosignatures}`;
  }
}
