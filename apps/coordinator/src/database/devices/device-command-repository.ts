/** Device-management (MDM) commands sent to enrolled Macs, with their outcomes. A command accepts one answer, before it expires. */

import type { DeviceCommandKind } from '../tables/devices.js';
import type { Database } from '../tables.js';

export interface CommandRecord {
  readonly uuid: string;
  readonly kind: DeviceCommandKind;
  readonly sentAt: number;
  readonly expiresAt: number;
  readonly endedAt: number | null;
  /** Null while pending. */
  readonly outcome: string | null;
}

/** Maximum stored commands per enrolment and kind. */
const MAX_STORED = 16;

export async function recordCommand(database: Database, command: CommandRecord & { readonly enrolmentId: string }): Promise<void> {
  await database.transaction().execute(async (transaction) => {
    await transaction
      .insertInto('device_commands')
      .values({
        uuid: command.uuid,
        enrolment_id: command.enrolmentId,
        kind: command.kind,
        sent_at: command.sentAt,
        expires_at: command.expiresAt,
        ended_at: null,
        outcome: null,
      })
      .execute();
    const boundary = await transaction
      .selectFrom('device_commands')
      .select('sent_at')
      .where('enrolment_id', '=', command.enrolmentId)
      .where('kind', '=', command.kind)
      .orderBy('sent_at', 'desc')
      .offset(MAX_STORED)
      .limit(1)
      .executeTakeFirst();
    if (boundary === undefined) return;
    await transaction
      .deleteFrom('device_commands')
      .where('enrolment_id', '=', command.enrolmentId)
      .where('kind', '=', command.kind)
      .where('sent_at', '<=', boundary.sent_at)
      .execute();
  });
}

type CommandMatch =
  | { readonly kind: 'matched'; readonly command: CommandRecord }
  | { readonly kind: 'unknown_command' | 'command_of_other_device' | 'already_answered' | 'answered_too_late' };

/** Finds the command of a device's answer, and marks it as received. A second answer is refused. */
export async function matchCommand(
  database: Database,
  answer: { readonly uuid: string; readonly enrolmentId: string; readonly now: number },
): Promise<CommandMatch> {
  const row = await database.selectFrom('device_commands').selectAll().where('uuid', '=', answer.uuid).executeTakeFirst();
  if (row === undefined) return { kind: 'unknown_command' };
  if (row.enrolment_id !== answer.enrolmentId) return { kind: 'command_of_other_device' };
  const taken = await database
    .updateTable('device_commands')
    .set({ ended_at: answer.now, outcome: 'received' })
    .where('uuid', '=', answer.uuid)
    .where('ended_at', 'is', null)
    .where('expires_at', '>', answer.now)
    .executeTakeFirst();
  if (taken.numUpdatedRows === 1n) {
    return {
      kind: 'matched',
      command: { uuid: row.uuid, kind: row.kind, sentAt: row.sent_at, expiresAt: row.expires_at, endedAt: answer.now, outcome: 'received' },
    };
  }
  // Not expired: another answer was recorded first.
  return { kind: row.ended_at === null && row.expires_at <= answer.now ? 'answered_too_late' : 'already_answered' };
}

export async function endCommand(database: Database, uuid: string, outcome: string, now: number): Promise<void> {
  await database.updateTable('device_commands').set({ outcome, ended_at: now }).where('uuid', '=', uuid).execute();
}

/** Commands of an enrolment, newest first. */
export async function commandHistory(database: Database, enrolmentId: string): Promise<CommandRecord[]> {
  const rows = await database
    .selectFrom('device_commands')
    .selectAll()
    .where('enrolment_id', '=', enrolmentId)
    .orderBy('sent_at', 'desc')
    // Two kinds of commands. Of each, one may have been added meanwhile.
    .limit(2 * MAX_STORED + 2)
    .execute();
  return rows.map((row) => ({
    uuid: row.uuid,
    kind: row.kind,
    sentAt: row.sent_at,
    expiresAt: row.expires_at,
    endedAt: row.ended_at,
    outcome: row.outcome,
  }));
}
