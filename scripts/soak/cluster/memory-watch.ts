/** `MemoryWatch`: samples the memory of a cluster's coordinators, per process: a restarted coordinator starts from a new baseline. */
import { residentBytes } from '../../../test/support/memory.js';
import type { SoakCluster } from './soak-cluster.js';

const SAMPLE_MS = 2_000;
/** Age at which a process's memory counts as its baseline, because modules are then loaded. */
const BASELINE_AGE_MS = 10_000;
const MIB = 2 ** 20;
const MAX_GROWTH_BYTES = 200 * MIB;

/** Sizes in bytes. */
interface ProcessMemory {
  /** First measurement, by `performance.now()`. */
  readonly since: number;
  /** Null until {@link BASELINE_AGE_MS} after `since`. */
  baseline: number | null;
  max: number;
  last: number;
}

export class MemoryWatch {
  readonly #cluster: SoakCluster;
  readonly #memoryByPid = new Map<number, ProcessMemory>();
  /** Process ids of each coordinator, by its index. Oldest first. */
  readonly #pids: number[][];
  readonly #timer: NodeJS.Timeout;

  constructor(cluster: SoakCluster) {
    this.#cluster = cluster;
    this.#pids = cluster.coordinators.map(() => []);
    this.#timer = setInterval(() => void this.#sample(), SAMPLE_MS);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Prints one line per coordinator. Returns a problem for each that grew too much. */
  report(): string[] {
    const mib = (bytes: number): string => `${Math.round(bytes / MIB)} MiB`;
    return this.#pids.flatMap((pids, index) => {
      const lives = pids.map((pid) => this.#memoryByPid.get(pid) as ProcessMemory);
      const newest = lives.at(-1);
      const growth = Math.max(0, ...lives.map(({ baseline, max }) => (baseline === null ? 0 : max - baseline)));
      const max = mib(Math.max(0, ...lives.map((life) => life.max)));
      const last = mib(newest?.last ?? 0);
      console.log(
        `memory of coordinator-${index + 1}: ${last} in the end, at most ${max}, growth of one process at most ${mib(growth)} (${pids.length} processes)`,
      );
      return growth > MAX_GROWTH_BYTES ? [`coordinator-${index + 1} has grown by ${mib(growth)}`] : [];
    });
  }

  async #sample(): Promise<void> {
    const now = performance.now();
    for (const { index, program } of this.#cluster.coordinators) {
      const { pid } = program.current;
      // The process may have ended.
      const bytes = await residentBytes(pid).catch(() => 0);
      if (bytes === 0) continue;
      let life = this.#memoryByPid.get(pid);
      if (life === undefined) {
        life = { since: now, baseline: null, max: 0, last: 0 };
        this.#memoryByPid.set(pid, life);
        this.#pids[index]?.push(pid);
      }
      if (now - life.since >= BASELINE_AGE_MS) life.baseline ??= bytes;
      life.max = Math.max(life.max, bytes);
      life.last = bytes;
    }
  }
}
