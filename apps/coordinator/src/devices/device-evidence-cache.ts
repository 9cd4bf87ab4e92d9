/** `DeviceEvidenceCache` holds the device evidence of watched providers, so that trust decisions need no database query. */

import { withTimeLimit } from '@inference/protocol';
import { CoalescingRunner } from '../coalescing-runner.js';
import { type CommandRecord, commandHistory } from '../database/devices/device-command-repository.js';
import { evidenceOfKey } from '../database/devices/device-evidence-repository.js';
import { type Enrolment, enrolmentOfKey } from '../database/devices/enrolment-repository.js';
import { MAX_READ_MS } from '../database/periodic-refresh.js';
import type { Database } from '../database/tables.js';
import type { TrustAnchor } from '../providers/verification/chain/trust-anchor.js';
import type { DeviceEvidence } from '../providers/verification/evidence.js';
import { certifiedAt, readEvidence } from './device-evidence.js';

interface DeviceEvidenceCacheOptions {
  readonly database: Database;
  readonly anchor: TrustAnchor;
  readonly now: () => number;
  /** Receives errors of reads, after which the cached evidence stays, and of listeners. */
  readonly onError: (error: unknown) => void;
}

export interface WatchedDevice {
  readonly seKeySha256: string;
  readonly enrolment: Enrolment | null;
  readonly evidence: DeviceEvidence;
  /** When the current certificate was issued, in milliseconds; null if none is valid. */
  readonly certifiedAt: number | null;
  /** Newest first. */
  readonly commands: readonly CommandRecord[];
  readonly readAt: number;
  /** When the provider on the device last connected, so that older reports may be outdated; null: never. */
  readonly reconnectedAt: number | null;
}

interface Entry {
  watchers: number;
  device: WatchedDevice | null;
  reconnectedAt: number | null;
  /** Reads of a key run one after the other. After {@link MAX_READ_MS}, the next one no longer waits. */
  readonly reads: CoalescingRunner;
  startedReads: number;
  /** Number of the read whose result is cached. A result of an earlier read is dropped. */
  cachedRead: number;
}

export class DeviceEvidenceCache {
  readonly #options: DeviceEvidenceCacheOptions;
  /** Key: SHA-256 of the enclave key (`seKeySha256`). */
  readonly #entries = new Map<string, Entry>();
  readonly #listeners = new Set<(seKeySha256: string) => void>();

  constructor(options: DeviceEvidenceCacheOptions) {
    this.#options = options;
  }

  /** Returns the evidence for an enclave key; null if none has been read. */
  forKey(seKeySha256: string): DeviceEvidence | null {
    return this.#entries.get(seKeySha256)?.device?.evidence ?? null;
  }

  /** Returns a watched device, as of the last read; null if none has been read. */
  device(seKeySha256: string): WatchedDevice | null {
    return this.#entries.get(seKeySha256)?.device ?? null;
  }

  *watched(): Generator<WatchedDevice> {
    for (const { device } of this.#entries.values()) if (device !== null) yield device;
  }

  /** Starts caching the evidence of a key. Resolves after the first read. Each call needs a matching {@link unwatch}. */
  watch(seKeySha256: string): Promise<void> {
    const entry = this.#entries.get(seKeySha256) ?? this.#newEntry(seKeySha256);
    entry.watchers++;
    this.#entries.set(seKeySha256, entry);
    return this.refresh(seKeySha256);
  }

  unwatch(seKeySha256: string): void {
    const entry = this.#entries.get(seKeySha256);
    if (entry !== undefined && --entry.watchers <= 0) this.#entries.delete(seKeySha256);
  }

  /** Records that the provider connected, because older reports of the device may be outdated. */
  markReconnected(seKeySha256: string): void {
    const entry = this.#entries.get(seKeySha256);
    if (entry === undefined) return;
    entry.reconnectedAt = this.#options.now();
    if (entry.device !== null) entry.device = { ...entry.device, reconnectedAt: entry.reconnectedAt };
  }

  /** Reloads the evidence of a watched key and notifies listeners. Never rejects. */
  refresh(seKeySha256: string): Promise<void> {
    return this.#entries.get(seKeySha256)?.reads.run() ?? Promise.resolve();
  }

  /** Calls `listener` with each watched key whose evidence was read, changed or not. Returns a function that unsubscribes. */
  onRead(listener: (seKeySha256: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #newEntry(seKeySha256: string): Entry {
    const reads = new CoalescingRunner(() => withTimeLimit(this.#read(seKeySha256, entry), MAX_READ_MS));
    const entry: Entry = { watchers: 0, device: null, reconnectedAt: null, reads, startedReads: 0, cachedRead: 0 };
    return entry;
  }

  async #read(seKeySha256: string, entry: Entry): Promise<void> {
    const { database, anchor, now, onError } = this.#options;
    const number = ++entry.startedReads;
    try {
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
        reconnectedAt: entry.reconnectedAt,
        evidence: readEvidence(seKeySha256, records, enrolment && { id: enrolment.id, enrolledAt }),
        certifiedAt: enrolment && certifiedAt(records, enrolment.id, { anchor, now: readAt }),
      };
    } catch (error) {
      onError(error);
      return;
    }
    if (this.#entries.get(seKeySha256) !== entry) return;
    for (const listener of this.#listeners) {
      try {
        listener(seKeySha256);
      } catch (error) {
        onError(error);
      }
    }
  }
}
