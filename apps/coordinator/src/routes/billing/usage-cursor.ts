/**
 * Cursors of the usage list. One holds the place of the last entry that was shown: its time, and its job among those of the
 * same moment. So entries that come in at the front meanwhile move nothing. It opens nothing that the key does not.
 */
import { RequestError } from '@inference/formats';

export interface UsageCursor {
  /** Milliseconds. */
  readonly completedAt: number;
  readonly jobId: string;
}

const CURSOR = /^([1-9]\d{0,15}|0)_([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})$/;

export function encodeUsageCursor({ completedAt, jobId }: UsageCursor): string {
  return Buffer.from(`${completedAt}_${jobId}`).toString('base64url');
}

/** Throws RequestError for anything that {@link cursorText} has not made. */
export function decodeUsageCursor(text: string): UsageCursor {
  const bytes = Buffer.from(text, 'base64url');
  const [, completedAt, jobId] = CURSOR.exec(bytes.toString('latin1')) ?? [];
  // Decoding is lenient; writing it again is not.
  if (
    completedAt === undefined ||
    jobId === undefined ||
    bytes.toString('base64url') !== text ||
    !Number.isSafeInteger(Number(completedAt))
  ) {
    throw new RequestError('invalid_request', 'cursor', 'cursor must be a cursor that an earlier page has given.');
  }
  return { completedAt: Number(completedAt), jobId };
}
