/**
 * The X25519 keys that jobs are sealed to in one session. A key lives at most 60 minutes and is replaced before; jobs
 * sealed to the old one are opened for a grace time, then it is dropped together with the ids of the jobs it served.
 */
import type { Enclave } from '@inference/enclave';
import { CLOCK_TOLERANCE_MS, type JobId, type KeyId, MAX_KEY_LIFETIME_MS, type SignedStatement } from '@inference/protocol';
import { generateSealingKeyPair, keyIdOf, type SealingKeyPair } from '@inference/protocol/crypto';

export interface SealingKey {
  readonly id: KeyId;
  readonly pair: SealingKeyPair;
  /** Ids of the jobs opened with this key. A job is opened once. */
  readonly seen: Set<JobId>;
}

export interface SealingKeysOptions {
  readonly enclave: Pick<Enclave, 'signKey'>;
  /** Of the attestation shown in this session. */
  readonly attestationSha256: string;
  /** A new key replaced the old one and must be told. */
  readonly onUpdate: (statement: SignedStatement) => void;
  /** No new key could be signed in time; the session cannot go on. */
  readonly onFailure: () => void;
  readonly lifetimeMs?: number;
  readonly graceMs?: number;
}

/** How long the old key opens jobs after its successor was told: a job's own lifetime and the clocks' difference. */
const GRACE_MS = 2 * CLOCK_TOLERANCE_MS;

export class SealingKeys {
  readonly #keys = new Map<KeyId, SealingKey>();
  readonly #timers = new Set<NodeJS.Timeout>();
  #renewal: NodeJS.Timeout | null = null;
  #statement: SignedStatement | null = null;
  #current: KeyId | null = null;
  #closed = false;

  private constructor(private readonly options: SealingKeysOptions) {}

  /** Makes and signs the first key. Throws EnclaveError. */
  static async open(options: SealingKeysOptions): Promise<SealingKeys> {
    const keys = new SealingKeys(options);
    await keys.#renew();
    return keys;
  }

  /** Statement of the key that new jobs should be sealed to. */
  get statement(): SignedStatement {
    if (this.#statement === null) throw new Error('no key has been signed');
    return this.#statement;
  }

  /** A key that is current or in its grace time. */
  find(id: KeyId): SealingKey | null {
    return this.#keys.get(id) ?? null;
  }

  /** Makes and tells a new key before its time, as after a jump of the clock that its validity goes by. */
  replace(): void {
    if (!this.#closed) this.#renew().catch(() => this.options.onFailure());
  }

  /** Drops all keys. */
  close(): void {
    this.#closed = true;
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
    this.#keys.clear();
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
    if (this.#closed) return;
    const previous = this.#current;
    this.#keys.set(id, { id, pair, seen: new Set() });
    this.#current = id;
    this.#statement = statement;
    if (previous !== null) {
      this.options.onUpdate(statement);
      this.#after(graceMs, () => this.#keys.delete(previous));
    }
    // The successor comes early enough for the grace time to end within the lifetime, with room for a slow enclave.
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
