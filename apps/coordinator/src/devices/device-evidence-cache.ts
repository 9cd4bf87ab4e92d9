/** `DeviceEvidenceCache`: evidence of connected providers, so that trust needs no query. Each read verifies the stored bytes again. */

import { type CommandRecord, commandHistory } from '../database/devices/device-command-repository.js';
import { evidenceOfKey } from '../database/devices/device-evidence-repository.js';
import { type Enrolment, enrolmentOfKey } from '../database/devices/enrolment-repository.js';
import type { Database } from '../database/tables.js';
import type { TrustAnchor } from '../providers/verification/chain/trust-anchor.js';
import type { DeviceEvidence } from '../providers/verification/evidence.js';
import { certifiedAt, readEvidence } from './device-evidence.js';

interface DeviceEvidenceCacheOptions {
  readonly database: Database;
  readonly anchor: TrustAnchor;
  readonly now: () => number;
  /** Receives read errors; the cached evidence stays. */
  readonly onReadError: (error: unknown) => void;
}

/** Cached evidence of one enclave key. */
export interface WatchedDevice {
  readonly seKeySha256: string;
  readonly enrolment: Enrolment | null;
  readonly evidence: DeviceEvidence;
  /** Issue time of the current certificate, in milliseconds; null when none verifies. */
  readonly certifiedAt: number | null;
  /** Newest first. */
  readonly commands: readonly CommandRecord[];
  readonly readAt: number;
  /** Time since which another report contradicts the newest report; null: no contradiction. */
  readonly contradictedSince: number | null;
}

interface Entry {
  watchers: number;
  device: WatchedDevice | null;
  contradictedSince: number | null;
  /** Serialises the reads of a key, so an old read never replaces a newer read. */
  reading: Promise<void>;
}

export class DeviceEvidenceCache {
  readonly #options: DeviceEvidenceCacheOptions;
  readonly #entries = new Map<string, Entry>();
  readonly #listeners = new Set<(seKeySha256: string) => void>();

  constructor(options: DeviceEvidenceCacheOptions) {
    this.#options = options;
  }

  /** The evidence for an enclave key, or null while none has been read. */
  forKey(seKeySha256: string): DeviceEvidence | null {
    return this.#entries.get(seKeySha256)?.device?.evidence ?? null;
  }

  /** A watched device, as of its last read. */
  device(seKeySha256: string): WatchedDevice | null {
    return this.#entries.get(seKeySha256)?.device ?? null;
  }

  /** All watched devices, for the command worker. */
  *watched(): Generator<WatchedDevice> {
    for (const { device } of this.#entries.values()) if (device !== null) yield device;
  }

  /** Starts caching a key's evidence. Resolves after the first read. Each call needs an {@link unwatch}. */
  watch(seKeySha256: string): Promise<void> {
    const entry = this.#entries.get(seKeySha256) ?? { watchers: 0, device: null, contradictedSince: null, reading: Promise.resolve() };
    entry.watchers++;
    this.#entries.set(seKeySha256, entry);
    return this.refresh(seKeySha256);
  }

  unwatch(seKeySha256: string): void {
    const entry = this.#entries.get(seKeySha256);
    if (entry !== undefined && --entry.watchers <= 0) this.#entries.delete(seKeySha256);
  }

  /** Marks the newest report as contradicted, so the device is queried again soon. */
  markContradicted(seKeySha256: string): void {
    const entry = this.#entries.get(seKeySha256);
    if (entry === undefined) return;
    entry.contradictedSince = this.#options.now();
    if (entry.device !== null) entry.device = { ...entry.device, contradictedSince: entry.contradictedSince };
  }

  /** Rereads a watched key and notifies the listeners. Never rejects. */
  refresh(seKeySha256: string): Promise<void> {
    const entry = this.#entries.get(seKeySha256);
    if (entry === undefined) return Promise.resolve();
    entry.reading = entry.reading.then(() => this.#read(seKeySha256, entry));
    return entry.reading;
  }

  /** Calls `listener` with every key whose evidence was read. Returns the function that unsubscribes. */
  onChange(listener: (seKeySha256: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async #read(seKeySha256: string, entry: Entry): Promise<void> {
    const { database, anchor, now, onReadError } = this.#options;
    try {
      const enrolment = await enrolmentOfKey(database, seKeySha256);
      const [records, commands] = await Promise.all([
        evidenceOfKey(database, seKeySha256),
        enrolment === null ? [] : commandHistory(database, enrolment.id),
      ]);
      const readAt = now();
      const enrolledAt = enrolment?.state === 'active' ? enrolment.boundAt : null;
      entry.device = {
        seKeySha256,
        enrolment,
        commands,
        readAt,
        contradictedSince: entry.contradictedSince,
        evidence: readEvidence(seKeySha256, records, enrolment && { id: enrolment.id, enrolledAt }),
        certifiedAt: enrolment && certifiedAt(records, enrolment.id, { anchor, now: readAt }),
      };
    } catch (error) {
      onReadError(error);
      return;
    }
    if (this.#entries.get(seKeySha256) !== entry) return;
    for (const listener of this.#listeners) listener(seKeySha256);
  }
}
