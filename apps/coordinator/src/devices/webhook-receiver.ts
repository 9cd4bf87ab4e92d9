/** `WebhookReceiver` handles reports of the MDM and ACME servers: links devices to enrolments by token, and stores their evidence. */
import { createHash } from 'node:crypto';
import { fromBase64, type NoncePreimage } from '@inference/protocol';
import { endCommand, matchCommand } from '../database/devices/device-command-repository.js';
import { evidenceOfKey, noncesOfKey, storeEvidence } from '../database/devices/device-evidence-repository.js';
import {
  activateDevice,
  bindDevice,
  type Enrolment,
  endEnrolment,
  enrolmentOfDevice,
  enrolmentOfToken,
} from '../database/devices/enrolment-repository.js';
import type { Database } from '../database/tables.js';
import type { WebhookDigestRepository } from '../database/webhook-digest-repository.js';
import { noncePreimage, weeklyEpoch } from '../providers/verification/chain/freshness.js';
import type { TrustAnchor } from '../providers/verification/chain/trust-anchor.js';
import { type AcmeRejection, verifyAcmeAnswer } from './acme.js';
import type { CommandOutcome } from './command-policy.js';
import { type AttestationRejection, certifiedAt, payloads, verifyAttestation } from './device-evidence.js';
import { ENROLMENT_PARAMETER, hashToken } from './enrolment-profile.js';
import type { DeviceInformation, DeviceReport } from './reports.js';
import { MAX_EVENT_AGE_MS, type WebhookEvent } from './webhook.js';

export type WebhookOutcome =
  | { readonly kind: 'taken'; readonly what: 'check_in' | 'check_out' | 'security_info' | 'attestation' | 'acme' | 'device_error' }
  /** The report is authentic, but its evidence is not valid. */
  | { readonly kind: 'rejected'; readonly code: AttestationRejection | AcmeRejection | 'stale_attestation' }
  | { readonly kind: 'ignored'; readonly reason: IgnoredReason }
  /** The report is a replay, or does not belong to this device, token or command. */
  | { readonly kind: 'refused'; readonly code: WebhookRejection };

type IgnoredReason = 'other_topic' | 'no_enrolment_token' | 'unknown_device' | 'unknown_command' | 'device_idle' | 'device_busy';
type WebhookRejection =
  | 'replayed'
  | 'answered_too_late'
  | 'command_of_other_device'
  | 'report_of_other_kind'
  | 'token_mismatch'
  | 'unknown_token'
  | 'token_of_other_device'
  | 'enrolment_expired'
  | 'enrolment_ended';

interface WebhookReceiverOptions {
  readonly database: Database;
  readonly anchor: TrustAnchor;
  readonly now: () => number;
  readonly onChange: (seKeySha256: string) => void;
  /** Digests of events that some coordinator of the cluster has accepted; null outside a cluster. */
  readonly sharedDigests: Pick<WebhookDigestRepository, 'add' | 'extend' | 'remove'> | null;
}

/** How long a digest is stored: twice the maximum age of an event, because the sender's clock may be ahead. */
const EVENT_LIFETIME_MS = 2 * MAX_EVENT_AGE_MS;
/** Lifetime of a shared digest until its event is handled. Short, so that the sender can retry even if the digest was not removed. */
const HANDLING_MS = 30_000;
/** Maximum number of stored digests outside a cluster. */
const MAX_STORED_DIGESTS = 50_000;
/** Number of nonces to try. Nonces change weekly, and a certificate may be up to 30 days old. */
const MAX_NONCES_TRIED = 6;

export class WebhookReceiver {
  readonly #options: WebhookReceiverOptions;
  /** Digests of accepted events, each with the time until which it is stored. Not used in a cluster. */
  readonly #seen = new Map<string, number>();
  /** Number of events, for operators. Key: outcome, such as `taken:check_in`. */
  readonly counts = new Map<string, number>();

  constructor(options: WebhookReceiverOptions) {
    this.#options = options;
  }

  /** Handles an event whose signature and structure were checked. */
  async take(event: WebhookEvent): Promise<WebhookOutcome> {
    const outcome = await this.#take(event);
    this.count(labelOf(outcome));
    return outcome;
  }

  /** Counts an event. Called directly for messages that are rejected before {@link take}. */
  count(label: string): void {
    this.counts.set(label, (this.counts.get(label) ?? 0) + 1);
  }

  /** Handles an answer to an ACME challenge. The enrolment is identified by the token in the URL of the ACME directory. */
  async takeAcme(result: {
    readonly enrolmentToken: string;
    readonly token: string;
    readonly attestationObject: string;
    readonly digest: string;
  }): Promise<WebhookOutcome> {
    const outcome = await this.#once(result.digest, () => this.#takeAcme(result));
    this.count(labelOf(outcome));
    return outcome;
  }

  async #take(event: WebhookEvent): Promise<WebhookOutcome> {
    if (event.kind === 'other') return { kind: 'ignored', reason: 'other_topic' };
    return this.#once(event.digest, () => (event.kind === 'check_in' ? this.#checkIn(event) : this.#report(event)));
  }

  async #checkIn(event: WebhookEvent & { readonly kind: 'check_in' }): Promise<WebhookOutcome> {
    const { database, now, onChange } = this.#options;
    const token = event.parameters[ENROLMENT_PARAMETER];
    switch (event.topic) {
      case 'Authenticate': {
        if (token === undefined) return { kind: 'ignored', reason: 'no_enrolment_token' };
        const binding = await bindDevice(database, { tokenHash: hashToken(token), deviceId: event.deviceId, now: now() });
        if (binding.kind !== 'bound') return { kind: 'refused', code: binding.kind };
        for (const key of new Set([binding.enrolment.seKeySha256, ...binding.ended])) onChange(key);
        return { kind: 'taken', what: 'check_in' };
      }
      case 'TokenUpdate':
      case 'CheckOut': {
        const enrolment = await enrolmentOfDevice(database, event.deviceId);
        if (enrolment === null) return { kind: 'ignored', reason: 'unknown_device' };
        if (token !== undefined && hashToken(token) !== enrolment.tokenHash) return { kind: 'refused', code: 'token_mismatch' };
        if (event.topic === 'TokenUpdate') await activateDevice(database, event.deviceId);
        else await endEnrolment(database, event.deviceId, 'checked_out', now());
        onChange(enrolment.seKeySha256);
        return { kind: 'taken', what: event.topic === 'TokenUpdate' ? 'check_in' : 'check_out' };
      }
    }
  }

  async #report(event: WebhookEvent & { readonly kind: 'report' }): Promise<WebhookOutcome> {
    const { database, now, onChange } = this.#options;
    const { report } = event;
    if (report.status === 'Idle' || report.commandUuid === null) return { kind: 'ignored', reason: 'device_idle' };
    // The management server keeps the command queued, and the device answers later.
    if (report.status === 'NotNow') return { kind: 'ignored', reason: 'device_busy' };
    const enrolment = await enrolmentOfDevice(database, event.deviceId);
    if (enrolment === null) return { kind: 'ignored', reason: 'unknown_device' };
    const token = event.parameters[ENROLMENT_PARAMETER];
    if (token !== undefined && hashToken(token) !== enrolment.tokenHash) return { kind: 'refused', code: 'token_mismatch' };
    const match = await matchCommand(database, { uuid: report.commandUuid, enrolmentId: enrolment.id, now: now() });
    if (match.kind === 'unknown_command') return { kind: 'ignored', reason: 'unknown_command' };
    if (match.kind === 'already_answered') return { kind: 'refused', code: 'replayed' };
    if (match.kind !== 'matched') return { kind: 'refused', code: match.kind };
    const [outcome, written] = await this.#store(enrolment, match.command.kind, report, event.rawPlist);
    await endCommand(database, match.command.uuid, written, now());
    onChange(enrolment.seKeySha256);
    return outcome;
  }

  /** Stores the evidence of an answer. Returns the outcome for the sender and for the command. */
  async #store(
    enrolment: Enrolment,
    kind: 'security_info' | 'device_information',
    report: DeviceReport,
    rawPlist: Uint8Array,
  ): Promise<readonly [WebhookOutcome, CommandOutcome]> {
    const { database, now } = this.#options;
    if (report.status !== 'Acknowledged') return [{ kind: 'taken', what: 'device_error' }, 'device_error'];
    const { content } = report;
    if (content.kind !== kind) return [{ kind: 'refused', code: 'report_of_other_kind' }, 'refused'];
    if (content.kind === 'security_info') {
      const payload = payloads.security(rawPlist);
      await storeEvidence(database, enrolment.seKeySha256, {
        kind: 'security_info',
        enrolmentId: enrolment.id,
        payload,
        receivedAt: now(),
      });
      return [{ kind: 'taken', what: 'security_info' }, 'taken'];
    }
    return this.#storeAttestation(enrolment, content.info, rawPlist);
  }

  async #storeAttestation(
    enrolment: Enrolment,
    info: DeviceInformation,
    rawPlist: Uint8Array,
  ): Promise<readonly [WebhookOutcome, CommandOutcome]> {
    const { database, anchor, now } = this.#options;
    if (info.attestation === null) return [{ kind: 'rejected', code: 'no_attestation' }, 'no_attestation'];
    const preimages = await this.#preimages(enrolment);
    // A certificate with the nonce of an earlier week also binds the device to the key.
    for (const preimage of preimages) {
      const verdict = verifyAttestation(info, preimage, { anchor, now: now() });
      if (!verdict.ok && verdict.code === 'freshness_mismatch') continue;
      // Both results replace the stored chain: a valid chain is proof, and a rejected one must count against the device.
      await this.#storeChain(enrolment, rawPlist, preimage);
      return verdict.ok ? [{ kind: 'taken', what: 'attestation' }, 'taken'] : [{ kind: 'rejected', code: verdict.code }, 'refused'];
    }
    // The certificate contains none of the nonces, so it proves nothing about the key, and does not invalidate an earlier proof.
    const [newest] = preimages;
    const records = await evidenceOfKey(database, enrolment.seKeySha256);
    const isProved = certifiedAt(records, enrolment.id, { anchor, now: now() }) !== null;
    if (newest !== undefined && !isProved) await this.#storeChain(enrolment, rawPlist, newest);
    return [{ kind: 'rejected', code: 'stale_attestation' }, 'stale_attestation'];
  }

  async #storeChain(enrolment: Enrolment, rawPlist: Uint8Array, preimage: NoncePreimage): Promise<void> {
    const { database, now } = this.#options;
    const payload = payloads.attestation(rawPlist, preimage);
    await storeEvidence(database, enrolment.seKeySha256, { kind: 'attestation', enrolmentId: enrolment.id, payload, receivedAt: now() });
  }

  /** Returns the preimages of all nonces that may still be valid, newest first. */
  async #preimages(enrolment: Enrolment): Promise<NoncePreimage[]> {
    const { database, now } = this.#options;
    const oldest = weeklyEpoch(now()) - MAX_NONCES_TRIED;
    const nonces = await noncesOfKey(database, enrolment.seKeySha256, MAX_NONCES_TRIED);
    return nonces
      .filter((nonce) => nonce.epoch > oldest)
      .map((nonce) => noncePreimage(fromBase64(enrolment.sePublicKey), nonce.epoch, fromBase64(nonce.random)));
  }

  async #takeAcme(result: { enrolmentToken: string; token: string; attestationObject: string }): Promise<WebhookOutcome> {
    const { database, anchor, now, onChange } = this.#options;
    const enrolment = await enrolmentOfToken(database, hashToken(result.enrolmentToken));
    if (enrolment === null) return { kind: 'refused', code: 'unknown_token' };
    const { serialNumber } = enrolment;
    const verdict = verifyAcmeAnswer({ token: result.token, attestationObject: result.attestationObject, serialNumber }, anchor, now());
    if (!verdict.ok) return { kind: 'rejected', code: verdict.code };
    const payload = payloads.acme({ token: result.token, att_obj: result.attestationObject });
    await storeEvidence(database, enrolment.seKeySha256, { kind: 'acme', enrolmentId: enrolment.id, payload, receivedAt: now() });
    onChange(enrolment.seKeySha256);
    return { kind: 'taken', what: 'acme' };
  }

  /** Handles an event unless it is a replay. After an error, the event counts as not received, so that its sender can send it again. */
  async #once(digest: string, handle: () => Promise<WebhookOutcome>): Promise<WebhookOutcome> {
    if (await this.#isReplay(digest)) return { kind: 'refused', code: 'replayed' };
    const { sharedDigests } = this.#options;
    try {
      const outcome = await handle();
      await sharedDigests?.extend(digest, EVENT_LIFETIME_MS);
      return outcome;
    } catch (error) {
      this.#seen.delete(digest);
      // May fail for the same reason as `handle`. The digest then expires after `HANDLING_MS`.
      await sharedDigests?.remove(digest).catch(() => {});
      throw error;
    }
  }

  /** Records the digest of an event. Returns whether it was already recorded. */
  async #isReplay(digest: string): Promise<boolean> {
    const { sharedDigests } = this.#options;
    return sharedDigests === null ? this.#wasSeen(digest) : !(await sharedDigests.add(digest, HANDLING_MS));
  }

  /** {@link #isReplay} outside a cluster. */
  #wasSeen(digest: string): boolean {
    const now = this.#options.now();
    if (this.#seen.has(digest)) return true;
    for (const [old, until] of this.#seen) {
      if (until > now && this.#seen.size < MAX_STORED_DIGESTS) break;
      this.#seen.delete(old);
    }
    this.#seen.set(digest, now + EVENT_LIFETIME_MS);
    return false;
  }
}

/** SHA-256 of a body in hexadecimal, for the detection of replays. */
export function digestOf(body: Uint8Array): string {
  return createHash('sha256').update(body).digest('hex');
}

function labelOf(outcome: WebhookOutcome): string {
  switch (outcome.kind) {
    case 'taken':
      return `taken:${outcome.what}`;
    case 'ignored':
      return `ignored:${outcome.reason}`;
    case 'rejected':
    case 'refused':
      return `${outcome.kind}:${outcome.code}`;
  }
}
