/** `RemoteProvider`: a provider connected to a peer. Implements `ProviderConnection`, so inference treats it like a local provider. */
import type { KeyId, ModelOffer, TrustLevel } from '@inference/protocol';
import { extractPrefixes } from '@inference/scheduler';
import type { JobFinding, ProviderConnection } from '../../providers/provider-connection.js';
import type { SealingKey } from '../../providers/session/registration/admission.js';
import type { Registration } from '../../providers/session/session-options.js';
import { encodeMessage } from '../json-message.js';
import type { Peer } from '../peer.js';
import { type FindingMessage, MAX_PREFIXES, type ProviderState } from './placement-messages.js';
import type { VerifiedProvider } from './provider-description.js';

/** Maximum time for a peer to accept a finding (observation during a job). Lost findings are not sent again. */
const FINDING_TIMEOUT_MS = 5000;
/** Minimum time between two requests for a description that may prove the trust level that the peer reports. */
const TRUST_RECHECK_INTERVAL_MS = 3000;

export class RemoteProvider implements ProviderConnection {
  readonly #peer: Peer;
  readonly sessionId: string;
  readonly #now: () => number;
  #verified: VerifiedProvider;
  #state: ProviderState;
  #recheckedAt = Number.NEGATIVE_INFINITY;
  /** Whether a newer connection of the same provider is known. Set by `PlacementClient`. */
  isReplaced = false;

  constructor(peer: Peer, state: ProviderState, verified: VerifiedProvider, now: () => number) {
    this.#peer = peer;
    this.sessionId = state.session_id;
    this.#state = state;
    this.#verified = verified;
    this.#now = now;
  }

  /** Id of the owning coordinator. */
  get owner(): string {
    return this.#peer.id;
  }

  /** Time of the newest known challenge that the provider signed on this connection, in milliseconds on the provider's clock. */
  get challengedAt(): number {
    return this.#verified.challengedAt;
  }

  /** Whether the verified description applies to a later state of this connection: same key, and not expired. */
  covers({ key_id }: ProviderState): boolean {
    return key_id === this.#verified.key.keyId && this.#now() < this.#verified.validUntil;
  }

  /** Whether a new description may prove the higher trust level of a later state. False soon after {@link markRechecked}. */
  mayProveMore({ trust_level }: ProviderState): boolean {
    if (trust_level !== 'hardware' || this.#verified.trustLevel === 'hardware') return false;
    return Math.abs(this.#now() - this.#recheckedAt) >= TRUST_RECHECK_INTERVAL_MS;
  }

  /** Call before the description is requested again. */
  markRechecked(): void {
    this.#recheckedAt = this.#now();
  }

  update(state: ProviderState, verified: VerifiedProvider = this.#verified): void {
    this.#state = state;
    this.#verified = verified;
  }

  get registration(): Registration {
    return this.#verified.registration;
  }

  get models(): readonly ModelOffer[] {
    return [this.#state.offer];
  }

  get key(): SealingKey | null {
    const { key } = this.#verified;
    return key.notAfter > this.#now() ? key : null;
  }

  /** As reported by the owning coordinator. Not verified here, because the client has verified the keys of its candidates. */
  get acceptedKeyIds(): readonly KeyId[] {
    return this.#state.accepted_key_ids ?? [this.#state.key_id];
  }

  get ownerAccountId(): string | null {
    return this.#state.owner_account_id;
  }

  /** The lower of two levels: the one reported by the owning coordinator, and the one that the evidence proves. */
  get trustLevel(): TrustLevel | null {
    return this.#verified.trustLevel === 'hardware' && this.#state.trust_level === 'hardware' ? 'hardware' : 'self_signed';
  }

  get isAttested(): boolean {
    return this.#state.is_attested;
  }

  get isDeviceChainVerified(): boolean {
    return this.#verified.isDeviceChainVerified;
  }

  get usedSlots(): number {
    return this.#state.used_slots;
  }

  isProven(model: string): boolean {
    return model === this.#state.offer.id && this.#state.is_proven;
  }

  isPlausibleRate(_model: string, tokensPerSecond: number): boolean {
    const limit = this.#state.max_plausible_tps;
    return limit === null || tokensPerSecond <= limit;
  }

  report(finding: JobFinding): void {
    const message = {
      provider_id: this.registration.identity.providerId,
      session_id: this.sessionId,
      finding: finding.kind === 'answer_settled' ? { ...finding, prefixes: extractPrefixes(finding.prefixes, MAX_PREFIXES) } : finding,
    } as FindingMessage;
    this.#peer.request('finding', encodeMessage(message), FINDING_TIMEOUT_MS).catch(() => {});
  }
}
