/** `SealingKeys`: the X25519 keys that a session's jobs are sealed to. Each is replaced within an hour, then valid for minutes more. */
import type { Enclave } from '@inference/enclave';
import { CLOCK_TOLERANCE_MS, type KeyId, MAX_KEY_LIFETIME_MS, type SignedStatement } from '@inference/protocol';
import { generateSealingKeyPair, keyIdOf, type SealingKeyPair } from '@inference/protocol/crypto';
import { ReplaySet } from './channel/replay-set.js';

export interface SealingKey {
  readonly id: KeyId;
  readonly pair: SealingKeyPair;
  /** Ids of the jobs admitted with this key, each only once. */
  readonly openedJobIds: ReplaySet;
  /** Encapsulated keys and nonces of the sealed requests opened with this key; each request is opened once. */
  readonly openedSealedRequests: ReplaySet;
}

interface SealingKeysOptions {
  readonly enclave: Pick<Enclave, 'signKey'>;
  /** SHA-256 of the attestation sent in this session. */
  readonly attestationSha256: string;
  /** Called when a new key has replaced the old one. The statement must be sent to the coordinator. */
  readonly onUpdate: (statement: SignedStatement) => void;
  /** Called when a new key could not be signed. The session must end. */
  readonly onFailure: () => void;
  readonly lifetimeMs?: number;
  readonly graceMs?: number;
}

/** Time for which a replaced key still opens jobs: the lifetime of a job message plus the clock tolerance. */
const GRACE_MS = 2 * CLOCK_TOLERANCE_MS;

export class SealingKeys {
  readonly #keyById = new Map<KeyId, SealingKey>();
  readonly #timers = new Set<NodeJS.Timeout>();
  #renewal: NodeJS.Timeout | null = null;
  #statement: SignedStatement | null = null;
  #current: KeyId | null = null;
  #isClosed = false;

  private constructor(private readonly options: SealingKeysOptions) {}

  /** Creates and signs the first key. Throws EnclaveError. */
  static async open(options: SealingKeysOptions): Promise<SealingKeys> {
    const keys = new SealingKeys(options);
    await keys.#renew();
    return keys;
  }

  /** The enclave's statement about the current key. */
  get statement(): SignedStatement {
    if (this.#statement === null) throw new Error('no key has been signed');
    return this.#statement;
  }

  /** The key, if it is current or in its grace period; else null. */
  find(id: KeyId): SealingKey | null {
    return this.#keyById.get(id) ?? null;
  }

  /** Replaces the current key early, as after a clock jump. */
  replace(): void {
    if (!this.#isClosed) this.#renew().catch(() => this.options.onFailure());
  }

  close(): void {
    this.#isClosed = true;
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
    this.#keyById.clear();
  }

  async #renew(): Promise<void> {
    const { enclave, attestationSha256, lifetimeMs = MAX_KEY_LIFETIME_MS, graceMs = GRACE_MS } = this.options;
    const pair = generateSealingKeyPair();
    const id = keyIdOf(pair.publicKey);
    const notBefore = Date.now();
    const statement = await enclave.signKey({
      x25519PublicKey: pair.publicKey,
      notBefore,
      notAfter: notBefore + lifetimeMs,
      attestationSha256,
    });
    if (this.#isClosed) return;
    const previous = this.#current;
    this.#keyById.set(id, { id, pair, openedJobIds: new ReplaySet(), openedSealedRequests: new ReplaySet() });
    this.#current = id;
    this.#statement = statement;
    if (previous !== null) {
      this.options.onUpdate(statement);
      this.#after(graceMs, () => this.#keyById.delete(previous));
    }
    // Replaced early enough for the grace period to end within the lifetime.
    if (this.#renewal !== null) clearTimeout(this.#renewal);
    this.#renewal = this.#after(Math.max(0, lifetimeMs - 2 * graceMs), () => {
      this.#renew().catch(() => this.options.onFailure());
    });
  }

  #after(ms: number, action: () => void): NodeJS.Timeout {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      action();
    }, ms);
    this.#timers.add(timer);
    return timer;
  }
}
