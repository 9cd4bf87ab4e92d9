/**
 * Enrolments of Macs in device management (MDM). A provider downloads an enrolment profile, which contains a token, once.
 *
 * Only the token binds a device to the provider's enclave key (its signing key), not for example a serial number.
 */
import type { ProviderId } from '@inference/protocol';
import type { EnrolmentEnd, EnrolmentState } from '../tables/devices.js';
import type { Database, Tables } from '../tables.js';

export interface Enrolment {
  readonly id: string;
  readonly providerId: ProviderId;
  readonly seKeySha256: string;
  /** base64 of the 65-byte x963 key. */
  readonly sePublicKey: string;
  readonly serialNumber: string;
  readonly tokenHash: string;
  readonly state: EnrolmentState;
  readonly deviceId: string | null;
  readonly createdAt: number;
  readonly expiresAt: number;
  readonly boundAt: number | null;
}

interface EnrolmentOffer {
  readonly id: string;
  readonly providerId: ProviderId;
  readonly seKeySha256: string;
  readonly sePublicKey: string;
  readonly serialNumber: string;
  readonly downloadHash: string;
  readonly tokenHash: string;
  readonly now: number;
  readonly expiresAt: number;
}

/** Stores an offered enrolment. Earlier offers of the same enclave key are deleted. */
export async function offerEnrolment(database: Database, offer: EnrolmentOffer): Promise<void> {
  await database.transaction().execute(async (transaction) => {
    await transaction
      .deleteFrom('device_enrolments')
      .where('se_key_sha256', '=', offer.seKeySha256)
      .where('state', '=', 'offered')
      .execute();
    await transaction
      .insertInto('device_enrolments')
      .values({
        id: offer.id,
        provider_id: offer.providerId,
        se_key_sha256: offer.seKeySha256,
        se_public_key: offer.sePublicKey,
        serial_number: offer.serialNumber,
        download_hash: offer.downloadHash,
        token_hash: offer.tokenHash,
        state: 'offered',
        device_id: null,
        created_at: offer.now,
        expires_at: offer.expiresAt,
        bound_at: null,
        ended_at: null,
        end_reason: null,
      })
      .execute();
  });
}

/** Marks a download as used, and stores the hash of the profile's token. Null: the download is unknown, used or expired. */
export async function takeDownload(
  database: Database,
  download: { readonly downloadHash: string; readonly tokenHash: string; readonly now: number },
): Promise<Enrolment | null> {
  const row = await database
    .updateTable('device_enrolments')
    .set({ download_hash: null, token_hash: download.tokenHash })
    .where('download_hash', '=', download.downloadHash)
    .where('state', '=', 'offered')
    .where('expires_at', '>', download.now)
    .returningAll()
    .executeTakeFirst();
  return row === undefined ? null : fromRow(row);
}

type Binding =
  | {
      readonly kind: 'bound';
      readonly enrolment: Enrolment;
      /** Enclave keys of the enrolments that this binding ended. */
      readonly ended: readonly string[];
    }
  | { readonly kind: 'unknown_token' | 'token_of_other_device' | 'enrolment_expired' | 'enrolment_ended' };

/** Finds the enrolment of a profile's token. Null: unknown, ended, or the profile was not downloaded. */
export async function enrolmentOfToken(database: Database, tokenHash: string): Promise<Enrolment | null> {
  const row = await database
    .selectFrom('device_enrolments')
    .selectAll()
    .where('token_hash', '=', tokenHash)
    .where('state', '!=', 'ended')
    .where('download_hash', 'is', null)
    .executeTakeFirst();
  return row === undefined ? null : fromRow(row);
}

/** Binds a device to the enrolment of the token that it presented. The same device may repeat the call; another one is refused. */
export async function bindDevice(
  database: Database,
  checkIn: { readonly tokenHash: string; readonly deviceId: string; readonly now: number },
): Promise<Binding> {
  return database.transaction().execute(async (transaction) => {
    const row = await transaction
      .selectFrom('device_enrolments')
      .selectAll()
      .where('token_hash', '=', checkIn.tokenHash)
      .executeTakeFirst();
    if (row === undefined) return { kind: 'unknown_token' };
    if (row.state === 'ended') return { kind: 'enrolment_ended' };
    if (row.device_id !== null && row.device_id !== checkIn.deviceId) return { kind: 'token_of_other_device' };
    if (row.state === 'offered' && (row.expires_at <= checkIn.now || row.download_hash !== null)) return { kind: 'enrolment_expired' };
    const ended = await transaction
      .updateTable('device_enrolments')
      .set({ state: 'ended', ended_at: checkIn.now, end_reason: 'superseded' })
      .where('id', '!=', row.id)
      .where('state', 'in', ['bound', 'active'])
      .where((where) => where.or([where('device_id', '=', checkIn.deviceId), where('se_key_sha256', '=', row.se_key_sha256)]))
      .returning('se_key_sha256')
      .execute();
    const bound = await transaction
      .updateTable('device_enrolments')
      .set({ state: 'bound', device_id: checkIn.deviceId, bound_at: row.bound_at ?? checkIn.now })
      .where('id', '=', row.id)
      .where((where) => where.or([where('device_id', 'is', null), where('device_id', '=', checkIn.deviceId)]))
      .returningAll()
      .executeTakeFirst();
    if (bound === undefined) return { kind: 'token_of_other_device' };
    return { kind: 'bound', enrolment: fromRow(bound), ended: [...new Set(ended.map((one) => one.se_key_sha256))] };
  });
}

/** Marks a device as ready for commands. Null: the device has no current enrolment. */
export async function activateDevice(database: Database, deviceId: string): Promise<Enrolment | null> {
  const row = await database
    .updateTable('device_enrolments')
    .set({ state: 'active' })
    .where('device_id', '=', deviceId)
    .where('state', 'in', ['bound', 'active'])
    .returningAll()
    .executeTakeFirst();
  return row === undefined ? null : fromRow(row);
}

/** Ends the enrolment of a device. Null: the device has no current enrolment. */
export async function endEnrolment(database: Database, deviceId: string, reason: EnrolmentEnd, now: number): Promise<Enrolment | null> {
  const row = await database
    .updateTable('device_enrolments')
    .set({ state: 'ended', ended_at: now, end_reason: reason })
    .where('device_id', '=', deviceId)
    .where('state', 'in', ['bound', 'active'])
    .returningAll()
    .executeTakeFirst();
  return row === undefined ? null : fromRow(row);
}

/** Current enrolment of a device; null: none. */
export async function enrolmentOfDevice(database: Database, deviceId: string): Promise<Enrolment | null> {
  const row = await database
    .selectFrom('device_enrolments')
    .selectAll()
    .where('device_id', '=', deviceId)
    .where('state', 'in', ['bound', 'active'])
    .executeTakeFirst();
  return row === undefined ? null : fromRow(row);
}

/** Current enrolment of an enclave key, preferably one with a device, else the newest offer. Null: none. */
export async function enrolmentOfKey(database: Database, seKeySha256: string): Promise<Enrolment | null> {
  const rows = await database
    .selectFrom('device_enrolments')
    .selectAll()
    .where('se_key_sha256', '=', seKeySha256)
    .where('state', '!=', 'ended')
    .orderBy('created_at', 'desc')
    .limit(2)
    .execute();
  const row = rows.find((one) => one.state !== 'offered') ?? rows[0];
  return row === undefined ? null : fromRow(row);
}

function fromRow(row: Tables['device_enrolments']): Enrolment {
  return {
    id: row.id,
    providerId: row.provider_id as ProviderId,
    seKeySha256: row.se_key_sha256,
    sePublicKey: row.se_public_key,
    serialNumber: row.serial_number,
    tokenHash: row.token_hash,
    state: row.state,
    deviceId: row.device_id,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    boundAt: row.bound_at,
  };
}
