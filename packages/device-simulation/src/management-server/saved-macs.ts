/** Macs on disk, so that a simulated management server that is started again still manages them. */
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import type { EnrolmentOrders } from './enrolment-profile.js';
import type { MacIdentity, MacProtections, Misbehaviour } from './fake-mac.js';

export interface SavedMac {
  readonly identity: MacIdentity;
  readonly protections: MacProtections;
  readonly misbehaviours: readonly Misbehaviour[];
  /** What its enrolment profile says; null while it is not enrolled. */
  readonly orders: EnrolmentOrders | null;
}

/** Macs in a file; none when there is no file. Throws on one that cannot be read. */
export function readMacs(file: string): readonly SavedMac[] {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
  return (JSON.parse(text) as { macs: SavedMac[] }).macs;
}

/** Replaces the file as a whole, readable by its owner only: enrolment tokens are in it. */
export function writeMacs(file: string, macs: readonly SavedMac[]): void {
  writeFileSync(`${file}.new`, `${JSON.stringify({ macs }, null, 2)}\n`, { mode: 0o600 });
  renameSync(`${file}.new`, file);
}
