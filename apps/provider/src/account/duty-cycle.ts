/**
 * `DutyCycleRecorder` records in `activity.json` how long this machine was connected and busy with jobs in each hour.
 *
 * The command `earnings` computes the duty cycle from it: the share of the connected time with running jobs.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { lazyValidator } from '@inference/protocol';
import Type, { type Static } from 'typebox';
import { writePrivateFile } from '../files/private-file.js';

const ActivitySchema = Type.Object({
  hours: Type.Array(
    Type.Object({
      /** Milliseconds since 1970 divided by 3,600,000. */
      hour: Type.Integer({ minimum: 0 }),
      connected_ms: Type.Integer({ minimum: 0 }),
      busy_ms: Type.Integer({ minimum: 0 }),
    }),
    { maxItems: 10_000 },
  ),
});
export type ActivityHour = Static<typeof ActivitySchema>['hours'][number];
const activityValidator = lazyValidator(ActivitySchema);

const HOUR_MS = 3_600_000;
const RETENTION_HOURS = 91 * 24;
const SAMPLE_INTERVAL_MS = 1000;
/** A longer gap means sleep or a clock change, and is not counted. */
const MAX_SAMPLE_GAP_MS = 5000;
const SAVE_MS = 60_000;

function activityPath(dataDir: string): string {
  return join(dataDir, 'activity.json');
}

/** Oldest first. Empty if the file is missing or damaged, because losing statistics is not an error. */
export function readActivity(dataDir: string): ActivityHour[] {
  try {
    const value: unknown = JSON.parse(readFileSync(activityPath(dataDir), 'utf8'));
    return activityValidator().Check(value) ? [...value.hours].sort((a, b) => a.hour - b.hour) : [];
  } catch {
    return [];
  }
}

interface ActivitySample {
  readonly connected: boolean;
  readonly busy: boolean;
}

export class DutyCycleRecorder {
  readonly #dataDir: string;
  readonly #now: () => number;
  readonly #hours: Map<number, { connected_ms: number; busy_ms: number }>;
  readonly #timer: NodeJS.Timeout | null;
  #sampledAt: number;
  #savedAt: number;

  /** Calls `sample` each second. Null: the creator calls {@link sample} and {@link save}, as tests do. */
  constructor(options: { readonly dataDir: string; readonly sample: (() => ActivitySample) | null; readonly now?: () => number }) {
    this.#dataDir = options.dataDir;
    this.#now = options.now ?? Date.now;
    this.#sampledAt = this.#now();
    this.#savedAt = this.#sampledAt;
    this.#hours = new Map(readActivity(options.dataDir).map(({ hour, ...sums }) => [hour, sums]));
    const { sample } = options;
    this.#timer = sample === null ? null : setInterval(() => this.sample(sample()), SAMPLE_INTERVAL_MS).unref();
  }

  /** Counts the time since the previous sample, by the present state. */
  sample({ connected, busy }: ActivitySample): void {
    const now = this.#now();
    const passed = now - this.#sampledAt;
    this.#sampledAt = now;
    if (passed < 0 || passed > MAX_SAMPLE_GAP_MS) return;
    if (connected) {
      const hour = Math.floor(now / HOUR_MS);
      const sums = this.#hours.get(hour) ?? { connected_ms: 0, busy_ms: 0 };
      sums.connected_ms += passed;
      if (busy) sums.busy_ms += passed;
      this.#hours.set(hour, sums);
    }
    if (Math.abs(now - this.#savedAt) >= SAVE_MS) this.save();
  }

  /** Ignores write errors: a full disk loses statistics only. */
  save(): void {
    this.#savedAt = this.#now();
    const oldest = Math.floor(this.#savedAt / HOUR_MS) - RETENTION_HOURS;
    for (const hour of this.#hours.keys()) if (hour < oldest) this.#hours.delete(hour);
    const hours = [...this.#hours].map(([hour, sums]) => ({ hour, ...sums })).sort((a, b) => a.hour - b.hour);
    try {
      writePrivateFile(activityPath(this.#dataDir), JSON.stringify({ hours }));
    } catch {}
  }

  close(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.save();
  }
}
