/**
 * `DeviceEnrolmentService` issues enrolment profiles to authenticated providers. A profile is served once, with a new token, stored hashed.
 */
import { randomUUID } from 'node:crypto';
import { type ProviderId, toBase64 } from '@inference/protocol';
import { offerEnrolment, takeDownload } from '../database/devices/enrolment-repository.js';
import type { Database } from '../database/tables.js';
import { ENROLMENT_PARAMETER, enrolmentProfile, hashToken, newToken, type ProfileSettings } from './enrolment-profile.js';

interface DeviceEnrolmentServiceOptions {
  readonly database: Database;
  readonly profile: ProfileSettings;
  /** Base address of profile downloads; the token is appended. */
  readonly downloadUrl: () => string;
  readonly now: () => number;
  /** Signs a profile; absent where no certificate is configured. */
  readonly sign?: (profile: Uint8Array) => Uint8Array;
}

/** Identity that the session proved. */
interface Applicant {
  readonly providerId: ProviderId;
  /** 65-byte x963 point. */
  readonly publicKey: Uint8Array;
  readonly publicKeySha256: string;
  readonly serialNumber: string;
}

/** Time to accept an offer and enrol the device, in milliseconds. */
const OFFER_MS = 30 * 60_000;

export class DeviceEnrolmentService {
  readonly #options: DeviceEnrolmentServiceOptions;

  constructor(options: DeviceEnrolmentServiceOptions) {
    this.#options = options;
  }

  /** Creates an offer and replaces unused offers of the applicant. */
  async offer(applicant: Applicant): Promise<{ readonly url: string; readonly expiresAt: number }> {
    const { database, downloadUrl, now } = this.#options;
    const download = newToken();
    const expiresAt = now() + OFFER_MS;
    await offerEnrolment(database, {
      id: randomUUID(),
      providerId: applicant.providerId,
      seKeySha256: applicant.publicKeySha256,
      sePublicKey: toBase64(applicant.publicKey),
      serialNumber: applicant.serialNumber,
      downloadHash: hashToken(download),
      // Hash of a random, unissued token. The real token is created with the profile.
      tokenHash: hashToken(newToken()),
      now: now(),
      expiresAt,
    });
    return { url: `${downloadUrl()}/${download}`, expiresAt };
  }

  /** Profile for a download token, once. Null if unknown, served before, or expired. */
  async download(download: string): Promise<Uint8Array | null> {
    const { database, profile, now, sign } = this.#options;
    const token = newToken();
    const enrolment = await takeDownload(database, { downloadHash: hashToken(download), tokenHash: hashToken(token), now: now() });
    if (enrolment === null) return null;
    const { providerId, serialNumber } = enrolment;
    const uuids = [randomUUID(), randomUUID(), randomUUID()] as const;
    const bytes = Buffer.from(enrolmentProfile(profile, { token, parameter: ENROLMENT_PARAMETER, providerId, serialNumber, uuids }));
    return sign === undefined ? bytes : sign(bytes);
  }
}
