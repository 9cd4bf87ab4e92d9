/** `startProgress`: prints the progress of a long run every ten seconds. */

const EVERY_MS = 10_000;

export interface Progress {
  stop(): void;
}

interface ProgressOptions {
  /** Figures so far, such as "12 faults, 3,456 answers verified". */
  readonly figures: () => string;
  /** Expected end, by `performance.now()`, if known. */
  readonly until?: number;
  readonly print?: (line: string) => void;
}

export function startProgress({ figures, until, print = console.log }: ProgressOptions): Progress {
  const begun = performance.now();
  const timer = setInterval(() => {
    const now = performance.now();
    const left = until === undefined ? '' : `, ${clock(Math.max(0, until - now))} left`;
    print(`${clock(now - begun)}${left}: ${figures()}`);
  }, EVERY_MS).unref();
  return { stop: () => clearInterval(timer) };
}

/** Minutes and seconds, as in 4:05. */
function clock(ms: number): string {
  const seconds = Math.round(ms / 1000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
}
