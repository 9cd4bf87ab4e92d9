/** A witness over HTTP (C2SP tlog-witness). Cosigns only checkpoints that extend the last one. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  type Checkpoint,
  formatSignatureLine,
  fromBase64,
  type NoteKey,
  parseCheckpointText,
  parseNoteKey,
  parseSignedNote,
  signNote,
  verifyConsistency,
  verifyNote,
} from '@inference/protocol';
import { ed25519KeyPairFrom, nodeLogCrypto, sha256 } from '@inference/protocol/crypto';
import type { Witness } from '../../src/transparency-log/settings.js';

export interface FakeWitness {
  readonly witness: Witness;
  /** Newest cosigned checkpoint. */
  latest: Checkpoint | null;
  /** Status with which every request fails; null: requests succeed. */
  failing: number | null;
  /** Milliseconds by which the clock is ahead. */
  aheadMs: number;
  close(): Promise<void>;
}

/** `logKey`: verifier key of the log, once it is known. */
export async function startWitness(name: string, seed: number, logKey: () => string): Promise<FakeWitness> {
  const { publicKey, sign } = ed25519KeyPairFrom(new Uint8Array(32).fill(seed));
  const key: NoteKey = { name, type: 'cosignature', publicKey };
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      const [status, body] = state.failing === null ? addCheckpoint(Buffer.concat(parts).toString()) : [state.failing, ''];
      response.writeHead(status).end(body);
    });
  });
  const addCheckpoint = (body: string): readonly [number, string] => {
    const split = body.indexOf('\n\n');
    const [old = '', ...proof] = body.slice(0, split).split('\n');
    const note = parseSignedNote(body.slice(split + 2));
    const checkpoint = parseCheckpointText(note.text);
    if (verifyNote(nodeLogCrypto, note, parseNoteKey(sha256, logKey())) === null) return [403, ''];
    const latest = state.latest ?? { size: 0, root: sha256(new Uint8Array()) };
    if (old !== `old ${latest.size}`) return [409, `${latest.size}\n`];
    const [oldSize, oldRoot, newSize, newRoot] = [latest.size, latest.root, checkpoint.size, checkpoint.root];
    if (!verifyConsistency(sha256, { oldSize, oldRoot, newSize, newRoot, proof: proof.map(fromBase64) })) return [422, ''];
    state.latest = checkpoint;
    return [200, formatSignatureLine(signNote(sha256, key, sign, note.text, Math.floor((Date.now() + state.aheadMs) / 1000)))];
  };
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  const state: FakeWitness = {
    witness: { key, url: `http://127.0.0.1:${port}` },
    latest: null,
    failing: null,
    aheadMs: 0,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return state;
}
