/**
 * Stores the newest evidence of managed Macs per enclave key (the provider's signing key) and kind, and the nonces sent to the Macs.
 *
 * The evidence is stored as received, and verified at every read.
 */

import type { DeviceEvidenceKind } from '../tables/devices.js';
import type { Database } from '../tables.js';

export interface EvidenceRecord {
  readonly kind: DeviceEvidenceKind;
  readonly enrolmentId: string;
  readonly payload: string;
  readonly receivedAt: number;
}

export async function storeEvidence(database: Database, seKeySha256: string, record: EvidenceRecord): Promise<void> {
  const row = { enrolment_id: record.enrolmentId, payload: record.payload, received_at: record.receivedAt };
  await database
    .insertInto('device_evidence')
    .values({ se_key_sha256: seKeySha256, kind: record.kind, ...row })
    .onConflict((conflict) => conflict.columns(['se_key_sha256', 'kind']).doUpdateSet(row))
    .execute();
}

export async function evidenceOfKey(database: Database, seKeySha256: string): Promise<EvidenceRecord[]> {
  const rows = await database.selectFrom('device_evidence').selectAll().where('se_key_sha256', '=', seKeySha256).execute();
  return rows.map((row) => ({ kind: row.kind, enrolmentId: row.enrolment_id, payload: row.payload, receivedAt: row.received_at }));
}

interface NonceRecord {
  readonly epoch: number;
  /** Value from which the nonce is derived: base64 of 16 bytes. */
  readonly random: string;
}

/** Returns the stored nonce of a key and week (`epoch`). Stores and returns `nonce` if none is stored. */
export async function storeNonce(database: Database, seKeySha256: string, nonce: NonceRecord, now: number): Promise<NonceRecord> {
  await database
    .insertInto('device_nonces')
    .values({ se_key_sha256: seKeySha256, epoch: nonce.epoch, random: nonce.random, created_at: now })
    .onConflict((conflict) => conflict.columns(['se_key_sha256', 'epoch']).doNothing())
    .execute();
  const row = await database
    .selectFrom('device_nonces')
    .select(['epoch', 'random'])
    .where('se_key_sha256', '=', seKeySha256)
    .where('epoch', '=', nonce.epoch)
    .executeTakeFirstOrThrow();
  return row;
}

/** The nonces of a key, newest first. */
export async function noncesOfKey(database: Database, seKeySha256: string, limit: number): Promise<NonceRecord[]> {
  return database
    .selectFrom('device_nonces')
    .select(['epoch', 'random'])
    .where('se_key_sha256', '=', seKeySha256)
    .orderBy('epoch', 'desc')
    .limit(limit)
    .execute();
}
