/** Evidence of devices, as the bytes that came: one row per enclave key and kind, the newest. No verdict is stored. */

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
