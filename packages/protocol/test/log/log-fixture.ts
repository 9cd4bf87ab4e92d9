/** In-memory transparency log for tests, with key, witnesses and tiles. */
import { ed25519KeyPairFrom, sha256 } from '../../src/crypto/index.js';
import {
  checkpointText,
  formatNoteKey,
  formatSignedNote,
  inclusionProof,
  type LoggedLeaf,
  leafHash,
  type NoteKey,
  type NoteSignature,
  nodeHash,
  type ReadSubtree,
  signNote,
  TILE_WIDTH,
  type TileId,
  timeKey,
} from '../../src/index.js';
import { naiveRoot } from './naive-merkle-tree.js';

export const ORIGIN = 'log.example/e2e/log';

export class TestSigner {
  readonly key: NoteKey;
  readonly #sign: (message: Uint8Array) => Uint8Array;

  constructor(name: string, seed: number, type: NoteKey['type']) {
    const { publicKey, sign } = ed25519KeyPairFrom(new Uint8Array(32).fill(seed));
    this.key = { name, type, publicKey };
    this.#sign = sign;
  }

  get verifierKey(): string {
    return formatNoteKey(sha256, this.key);
  }

  /** Signatures of a text. For the log, includes its cosignature. */
  sign(text: string, timeMs: number): NoteSignature[] {
    const keys = this.key.type === 'ed25519' ? [this.key, timeKey(this.key)] : [this.key];
    return keys.map((key) => signNote(sha256, key, this.#sign, text, Math.floor(timeMs / 1000)));
  }
}

export class TestLog {
  readonly signer = new TestSigner(ORIGIN, 1, 'ed25519');

  constructor(readonly entries: readonly Uint8Array[]) {}

  checkpoint(size: number, timeMs: number, witnesses: readonly TestSigner[] = [], cosignedMs = timeMs): string {
    const text = checkpointText({ origin: ORIGIN, size, root: naiveRoot(this.entries.slice(0, size)) });
    const signatures = [...this.signer.sign(text, timeMs), ...witnesses.flatMap((witness) => witness.sign(text, cosignedMs))];
    return formatSignedNote({ text, signatures });
  }

  async leaf(leafIndex: number, size: number, checkpoint: string): Promise<LoggedLeaf> {
    const proof = await inclusionProof(sha256, this.subtree, leafIndex, size);
    return { checkpoint, entry: this.entries[leafIndex] as Uint8Array, leafIndex, inclusionProof: proof };
  }

  readonly subtree: ReadSubtree = async (level, index) => {
    if (level === 0) return leafHash(sha256, this.entries[index] as Uint8Array);
    const [left, right] = await Promise.all([this.subtree(level - 1, 2 * index), this.subtree(level - 1, 2 * index + 1)]);
    return nodeHash(sha256, left, right);
  };

  readonly readTile = async ({ level, index, width }: TileId): Promise<Uint8Array> => {
    const hashes = Array.from({ length: width }, (_, at) => this.subtree(8 * Number(level), TILE_WIDTH * index + at));
    return new Uint8Array(Buffer.concat(await Promise.all(hashes)));
  };
}
