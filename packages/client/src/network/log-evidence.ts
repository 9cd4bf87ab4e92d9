/** `LogEvidence` checks providers' log entries and checkpoints against the verified log, and caches successes. */
import { type E2eCrypto, type E2eLogHead, toHex, utf8 } from '@inference/protocol';
import { E2ERefused } from '../refusal.js';
import { BoundedMap } from './bounded-map.js';
import type { LogVerifier } from './log-verifier.js';
import type { VerifiedProvider } from './verified-provider.js';

/** Maximum remembered entries of providers. */
const MAX_ENTRIES = 1024;
/** Maximum remembered comparisons of checkpoints. */
const MAX_COMPARISONS = 256;

/** Belongs to one client. The trees that a client accepts are consistent, so an entry in one is in every later one. */
export class LogEvidence {
  readonly #crypto: Pick<E2eCrypto, 'sha256'>;
  readonly #verifier: LogVerifier;
  /** Verified entries. Key: leaf index and key hash. */
  readonly #entries = new BoundedMap<string, true>(MAX_ENTRIES);
  /** Consistent checkpoints. Key: hash of the checkpoint, and tree. */
  readonly #comparisons = new BoundedMap<string, true>(MAX_COMPARISONS);

  constructor(crypto: Pick<E2eCrypto, 'sha256'>, verifier: LogVerifier) {
    this.#crypto = crypto;
    this.#verifier = verifier;
  }

  /** Requires a provider's leaf in the keyset to be its enclave key's entry. Throws E2ERefused `split_view`. */
  async requireEntry(
    { providerId, enclaveKey, enclaveKeySha256 }: VerifiedProvider,
    logIndex: number | undefined,
    head: E2eLogHead,
  ): Promise<void> {
    if (logIndex === undefined) throw new E2ERefused('split_view', `Provider ${providerId}: it is not in the transparency log.`);
    const key = `${logIndex} ${enclaveKeySha256}`;
    if (this.#entries.get(key)) return;
    await this.#verifier.verifyProvider({ providerId, enclaveKey }, logIndex, head);
    this.#entries.set(key, true);
  }

  /** Compares the checkpoint that a provider reports with the tree head of the request. Throws E2ERefused `split_view`. */
  async compareCheckpoint(note: string, head: E2eLogHead): Promise<void> {
    const key = `${toHex(this.#crypto.sha256(utf8(note)))} ${head.size} ${head.root}`;
    if (this.#comparisons.get(key)) return;
    await this.#verifier.compareCheckpoint(note, head);
    this.#comparisons.set(key, true);
  }
}
