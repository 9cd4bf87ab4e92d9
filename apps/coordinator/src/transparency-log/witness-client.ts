/** `WitnessClient` requests cosignatures from one witness (C2SP tlog-witness, `add-checkpoint`). */
import {
  MAX_CLOCK_SKEW_MS,
  type NoteKey,
  type NoteSignature,
  parseSignatureLines,
  parseSignedNote,
  toBase64,
  verifyNote,
} from '@inference/protocol';
import { nodeLogCrypto } from '@inference/protocol/crypto';
import type { Witness } from './settings.js';

const TIMEOUT_MS = 5000;
const MAX_RESPONSE_BYTES = 16_384;
/** Two attempts: a 409 response to the first contains the tree size that the witness knows. */
const MAX_ATTEMPTS = 2;
/** Half of what clients tolerate, because the clock of a client may be behind this one. */
const MAX_WITNESS_SKEW_MS = MAX_CLOCK_SKEW_MS / 2;

export interface NewCheckpoint {
  /** Checkpoint as a signed note (C2SP tlog-checkpoint). */
  readonly note: string;
  readonly size: number;
  /** Computes the consistency proof from an older tree size. */
  readonly proofFrom: (oldSize: number) => Promise<readonly Uint8Array[]>;
}

export class WitnessClient {
  readonly #witness: Witness;
  /** Tree size that the witness last cosigned, as far as known. */
  #knownSize = 0;

  constructor(witness: Witness) {
    this.#witness = witness;
  }

  get name(): string {
    return this.#witness.key.name;
  }

  /** Requests and verifies a cosignature. Throws an Error with the witness's name and the reason. */
  async cosign({ note, size, proofFrom }: NewCheckpoint): Promise<NoteSignature> {
    for (let attempt = 1; ; attempt++) {
      const proof = await proofFrom(this.#knownSize);
      const { status, body } = await this.#post(`old ${this.#knownSize}\n${proof.map((hash) => `${toBase64(hash)}\n`).join('')}\n${note}`);
      if (status === 200) {
        this.#knownSize = size;
        return this.#verified(note, body);
      }
      const witnessSize = Number(/^(0|[1-9]\d{0,15})\n$/.exec(body)?.[1] ?? Number.NaN);
      if (status !== 409 || attempt === MAX_ATTEMPTS || !(witnessSize <= size)) throw this.#error(`answered ${status}`);
      this.#knownSize = witnessSize;
    }
  }

  #verified(note: string, lines: string): NoteSignature {
    const { key } = this.#witness;
    const { text } = parseSignedNote(note);
    const own = parseSignatureLines(lines).filter(({ name }) => name === key.name);
    const valid = own.flatMap((signature) => {
      const verified = verifyCosignature(text, signature, key);
      return verified === null ? [] : [{ signature, ...verified }];
    });
    if (valid.length === 0) throw this.#error('sent no valid cosignature');
    const cosignature = valid.find(({ isInFuture }) => !isInFuture);
    if (cosignature === undefined) throw this.#error('dates its cosignature in the future');
    return cosignature.signature;
  }

  async #post(body: string): Promise<{ readonly status: number; readonly body: string }> {
    try {
      const signal = AbortSignal.timeout(TIMEOUT_MS);
      const response = await fetch(`${this.#witness.url}/add-checkpoint`, { method: 'POST', body, signal, redirect: 'error' });
      return { status: response.status, body: await boundedText(response) };
    } catch (error) {
      throw this.#error(error instanceof Error ? error.message : String(error));
    }
  }

  #error(reason: string): Error {
    return new Error(`witness ${this.#witness.key.name}: ${reason}`);
  }
}

/** Null: the witness did not sign this text. `isInFuture`: clients may refuse the cosignature. */
export function verifyCosignature(text: string, signature: NoteSignature, key: NoteKey): { readonly isInFuture: boolean } | null {
  const verified = verifyNote(nodeLogCrypto, { text, signatures: [signature] }, key);
  return verified === null ? null : { isInFuture: 1000 * verified.timeSeconds > Date.now() + MAX_WITNESS_SKEW_MS };
}

async function boundedText(response: Response): Promise<string> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of response.body ?? []) {
    bytes += part.length;
    if (bytes > MAX_RESPONSE_BYTES) throw new Error('the response is too long');
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}
