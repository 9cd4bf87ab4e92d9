/** `SealingKeys`: X25519 keys of a session, each replaced within 60 minutes. Old keys open jobs for a grace period. */
import type { Enclave } from '@inference/enclave';
import { CLOCK_TOLERANCE_MS, type KeyId, MAX_KEY_LIFETIME_MS, type SignedStatement } from '@inference/protocol';
import { generateSealingKeyPair, keyIdOf, type SealingKeyPair } from '@inference/protocol/crypto';
import { ReplaySet } from './channel/replay-set.js';

export interface SealingKey {
  readonly id: KeyId;
  readonly pair: SealingKeyPair;
  /** Ids of jobs opened with this key, as each job is opened once. */
  readonly seen: ReplaySet;
  /**
   * Encapsulated keys and nonces of sealed requests opened with this key. No other key opens them.
   *
   * A key that replaces this one after a clock change starts with an empty set, without times of the earlier clock.
   */
  readonly opened: ReplaySet;
}

interface SealingKeysOptions {
  readonly enclave: Pick<Enclave, 'signKey'>;
  /** SHA-256 of the attestation sent in this session. */
  readonly attestationSha256: string;
  /** Called when a new key replaced the old one and must be announced. */
  readonly onUpdate: (statement: SignedStatement) => void;
  /** Called when a new key could not be signed; the session must end. */
  readonly onFailure: () => void;
  readonly lifetimeMs?: number;
  readonly graceMs?: number;
}

/** Time that an old key stays valid after its replacement: a job's lifetime plus the clock tolerance. */
const GRACE_MS = 2 * CLOCK_TOLERANCE_MS;

export class SealingKeys {
  readonly #keys = new Map<KeyId, SealingKey>();
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

  get statement(): SignedStatement {
    if (this.#statement === null) throw new Error('no key has been signed');
    return this.#statement;
  }

  /** A key that is current or in its grace period. */
  find(id: KeyId): SealingKey | null {
    return this.#keys.get(id) ?? null;
  }

  /** Creates and announces a new key early, such as after a clock jump. */
  replace(): void {
    if (!this.#isClosed) this.#renew().catch(() => this.options.onFailure());
  }

  close(): void {
    this.#isClosed = true;
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
    if (this.#isClosed) return;
    const previous = this.#current;
    this.#keys.set(id, { id, pair, seen: new ReplaySet(), opened: new ReplaySet() });
    this.#current = id;
    this.#statement = statement;
    if (previous !== null) {
      this.options.onUpdate(statement);
      this.#after(graceMs, () => this.#keys.delete(previous));
    }
    // The successor is created early enough for the grace period to end within the lifetime.
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
