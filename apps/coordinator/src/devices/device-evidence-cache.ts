/** `DeviceEvidenceCache` holds the device evidence of connected providers, so that trust decisions need no database query. */

import { type CommandRecord, commandHistory } from '../database/devices/device-command-repository.js';
import { evidenceOfKey } from '../database/devices/device-evidence-repository.js';
import { type Enrolment, enrolmentOfKey } from '../database/devices/enrolment-repository.js';
import { MAX_READ_MS, settledWithin } from '../database/periodic-refresh.js';
import type { Database } from '../database/tables.js';
import type { TrustAnchor } from '../providers/verification/chain/trust-anchor.js';
import type { DeviceEvidence } from '../providers/verification/evidence.js';
import { certifiedAt, readEvidence } from './device-evidence.js';

interface DeviceEvidenceCacheOptions {
  readonly database: Database;
  readonly anchor: TrustAnchor;
  readonly now: () => number;
  /** Receives errors of reads and listeners. After a failed read, the cached evidence stays. */
  readonly onReadError: (error: unknown) => void;
}

/** Cached evidence of one enclave key. */
export interface WatchedDevice {
  readonly seKeySha256: string;
  readonly enrolment: Enrolment | null;
  readonly evidence: DeviceEvidence;
  /** When the current certificate was issued, in milliseconds; null if none is valid. */
  readonly certifiedAt: number | null;
  /** Newest first. */
  readonly commands: readonly CommandRecord[];
  readonly readAt: number;
  /** When the device last reconnected, so that older reports may be outdated; null: never. */
  readonly contradictedSince: number | null;
}

interface Entry {
  watchers: number;
  device: WatchedDevice | null;
  contradictedSince: number | null;
  /** Newest read. The next one waits until it has ended, or for {@link MAX_READ_MS}. Never rejects. */
  reading: Promise<void>;
  /** Number of reads so far, and the number of the read whose result is cached. A late result never replaces a newer one. */
  startedReads: number;
  cachedRead: number;
  /** The next read, which waits for the running one. All callers share it until it starts. */
  queued: Promise<void> | null;
}

export class DeviceEvidenceCache {
  readonly #options: DeviceEvidenceCacheOptions;
  readonly #entries = new Map<string, Entry>();
  readonly #listeners = new Set<(seKeySha256: string) => void>();

  constructor(options: DeviceEvidenceCacheOptions) {
    this.#options = options;
  }

  /** Evidence for an enclave key; null if none has been read. */
  forKey(seKeySha256: string): DeviceEvidence | null {
    return this.#entries.get(seKeySha256)?.device?.evidence ?? null;
  }

  /** A watched device, as of the last read. */
  device(seKeySha256: string): WatchedDevice | null {
    return this.#entries.get(seKeySha256)?.device ?? null;
  }

  /** All watched devices, for the command worker. */
  *watched(): Generator<WatchedDevice> {
    for (const { device } of this.#entries.values()) if (device !== null) yield device;
  }

  /** Starts caching the evidence of a key. Resolves after the first read. Each call needs a matching {@link unwatch}. */
  watch(seKeySha256: string): Promise<void> {
    const entry = this.#entries.get(seKeySha256) ?? newEntry();
    entry.watchers++;
    this.#entries.set(seKeySha256, entry);
    return this.refresh(seKeySha256);
  }

  unwatch(seKeySha256: string): void {
    const entry = this.#entries.get(seKeySha256);
    if (entry !== undefined && --entry.watchers <= 0) this.#entries.delete(seKeySha256);
  }

  /** Records that the newest report may be outdated, so that the device is queried again soon. */
  markContradicted(seKeySha256: string): void {
    const entry = this.#entries.get(seKeySha256);
    if (entry === undefined) return;
    entry.contradictedSince = this.#options.now();
    if (entry.device !== null) entry.device = { ...entry.device, contradictedSince: entry.contradictedSince };
  }

  /** Reloads the evidence of a watched key and notifies listeners. Never rejects. */
  refresh(seKeySha256: string): Promise<void> {
    const entry = this.#entries.get(seKeySha256);
    if (entry === undefined) return Promise.resolve();
    const readNext = (): Promise<void> => {
      entry.queued = null;
      entry.reading = settledWithin(this.#read(seKeySha256, entry).catch(this.#options.onReadError), MAX_READ_MS);
      return entry.reading;
    };
    entry.queued ??= entry.reading.then(readNext);
    return entry.queued;
  }

  /** Calls `listener` with each key whose evidence was read. Returns a function that unsubscribes. */
  onChange(listener: (seKeySha256: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async #read(seKeySha256: string, entry: Entry): Promise<void> {
    const { database, anchor, now } = this.#options;
    const number = ++entry.startedReads;
    const enrolment = await enrolmentOfKey(database, seKeySha256);
    const [records, commands] = await Promise.all([
      evidenceOfKey(database, seKeySha256),
      enrolment === null ? [] : commandHistory(database, enrolment.id),
    ]);
    if (number < entry.cachedRead) return;
    entry.cachedRead = number;
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
    if (this.#entries.get(seKeySha256) !== entry) return;
    for (const listener of this.#listeners) listener(seKeySha256);
  }
}

function newEntry(): Entry {
  return { watchers: 0, device: null, contradictedSince: null, reading: Promise.resolve(), startedReads: 0, cachedRead: 0, queued: null };
}
