/**
 * `DeviceEnrolmentService` issues enrolment profiles, which enrol Macs in device management, to authenticated providers.
 *
 * A download token in the URL gives access to a profile once. The profile contains an enrolment token, which the Mac's messages carry.
 * Only hashes of tokens are stored.
 */
import { randomUUID } from 'node:crypto';
import { type ProviderId, toBase64 } from '@inference/protocol';
import { offerEnrolment, takeDownload } from '../database/devices/enrolment-repository.js';
import type { Database } from '../database/tables.js';
import { ENROLMENT_PARAMETER, enrolmentProfile, hashToken, newToken, type ProfileSettings } from './enrolment-profile.js';

interface DeviceEnrolmentServiceOptions {
  readonly database: Database;
  readonly profile: ProfileSettings;
  /** Base URL of profile downloads. The download token is appended. */
  readonly downloadUrl: () => string;
  readonly now: () => number;
  /** Signs a profile; absent if no certificate is configured. */
  readonly sign?: (profile: Uint8Array) => Uint8Array;
}

/** Identity that the provider's session has verified. */
interface Applicant {
  readonly providerId: ProviderId;
  /** Uncompressed P-256 point (x963), 65 bytes. */
  readonly publicKey: Uint8Array;
  readonly publicKeySha256: string;
  readonly serialNumber: string;
}

/** Time in which the owner must install the profile. */
const OFFER_MS = 30 * 60_000;

export class DeviceEnrolmentService {
  readonly #options: DeviceEnrolmentServiceOptions;

  constructor(options: DeviceEnrolmentServiceOptions) {
    this.#options = options;
  }

  /** Creates an enrolment offer. Replaces unused offers of the same provider. */
  async offer(applicant: Applicant): Promise<{ readonly url: string; readonly expiresAt: number }> {
    const { database, downloadUrl, now } = this.#options;
    const downloadToken = newToken();
    const expiresAt = now() + OFFER_MS;
    await offerEnrolment(database, {
      id: randomUUID(),
      providerId: applicant.providerId,
      seKeySha256: applicant.publicKeySha256,
      sePublicKey: toBase64(applicant.publicKey),
      serialNumber: applicant.serialNumber,
      downloadHash: hashToken(downloadToken),
      // Placeholder: hash of a token that nobody gets. The enrolment token is created when the profile is downloaded.
      tokenHash: hashToken(newToken()),
      now: now(),
      expiresAt,
    });
    return { url: `${downloadUrl()}/${downloadToken}`, expiresAt };
  }

  /** Returns the profile for a download token, once. Null: unknown, already downloaded, or expired. */
  async download(downloadToken: string): Promise<Uint8Array | null> {
    const { database, profile, now, sign } = this.#options;
    const token = newToken();
    const enrolment = await takeDownload(database, { downloadHash: hashToken(downloadToken), tokenHash: hashToken(token), now: now() });
    if (enrolment === null) return null;
    const { providerId, serialNumber } = enrolment;
    const uuids = [randomUUID(), randomUUID(), randomUUID()] as const;
    const bytes = Buffer.from(enrolmentProfile(profile, { token, parameter: ENROLMENT_PARAMETER, providerId, serialNumber, uuids }));
    return sign === undefined ? bytes : sign(bytes);
  }
}
