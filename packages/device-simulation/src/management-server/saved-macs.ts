/** Persists simulated Macs, so that they survive a restart of the management server. */
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import type { EnrolmentProfile } from './enrolment-profile.js';
import type { MacIdentity, MacProtections, Misbehaviour } from './fake-mac.js';

interface SavedMac {
  readonly identity: MacIdentity;
  readonly protections: MacProtections;
  readonly misbehaviours: readonly Misbehaviour[];
  /** Content of the enrolment profile; null while not enrolled. */
  readonly orders: EnrolmentProfile | null;
}

/** Saved Macs; empty when the file is absent. Throws on an unreadable file. */
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

/** Replaces the file, which only its owner can read, because it contains enrolment tokens. */
export function writeMacs(file: string, macs: readonly SavedMac[]): void {
  writeFileSync(`${file}.new`, `${JSON.stringify({ macs }, null, 2)}\n`, { mode: 0o600 });
  renameSync(`${file}.new`, file);
}
