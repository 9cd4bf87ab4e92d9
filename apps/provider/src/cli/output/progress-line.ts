/** `ProgressLine`: progress of a download with rate and remaining time. On a terminal, one line that is overwritten. */
import type { Progress } from '../../models/store/download.js';

interface ProgressReport {
  readonly phase: Progress['phase'];
  readonly bytes: number;
  readonly total: number | null;
  readonly bytes_per_second: number | null;
  readonly seconds_left: number | null;
}

/** Milliseconds between two reports, and window of the rate. */
const EVERY_MS = 500;
const WINDOW_MS = 10_000;

export class ProgressLine {
  #samples: { readonly at: number; readonly bytes: number }[] = [];
  #phase: Progress['phase'] | null = null;
  #printedAt = Number.NEGATIVE_INFINITY;
  #shown = false;

  constructor(
    private readonly output: { readonly isTTY?: boolean; write(text: string): unknown },
    private readonly now: () => number,
  ) {}

  /** Returns a report twice a second; null in between. */
  update({ phase, bytes, total }: Progress): ProgressReport | null {
    const at = this.now();
    if (phase !== this.#phase) {
      this.#phase = phase;
      this.#samples = [];
      this.#printedAt = Number.NEGATIVE_INFINITY;
    }
    if (at - this.#printedAt < EVERY_MS && bytes !== total) return null;
    this.#printedAt = at;
    this.#samples = [...this.#samples.filter((sample) => at - sample.at < WINDOW_MS), { at, bytes }];
    const first = this.#samples[0] as { readonly at: number; readonly bytes: number };
    const rate = at > first.at ? ((bytes - first.bytes) / (at - first.at)) * 1000 : null;
    const left = rate === null || rate <= 0 || total === null ? null : Math.ceil((total - bytes) / rate);
    const news = { phase, bytes, total, bytes_per_second: rate === null ? null : Math.round(rate), seconds_left: left };
    if (this.output.isTTY === true) {
      this.output.write(`\r\x1b[K${lineOf(news)}`);
      this.#shown = true;
    }
    return news;
  }

  end(): void {
    if (this.#shown) this.output.write('\n');
    this.#shown = false;
  }
}

/** The report as text for people. */
export function lineOf({ phase, bytes, total, bytes_per_second, seconds_left }: ProgressReport): string {
  const part = total === null || total === 0 ? '' : ` (${Math.floor((100 * bytes) / total)} %)`;
  const of = total === null ? '' : ` of ${megabytes(total)}`;
  const rate = bytes_per_second === null ? '' : `, ${megabytes(bytes_per_second)}/s`;
  const left = seconds_left === null ? '' : `, ${duration(seconds_left)} left`;
  return `${phase} ${megabytes(bytes)}${of}${part}${rate}${left}`;
}

function megabytes(bytes: number): string {
  return bytes < 1e9 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e9).toFixed(2)} GB`;
}

function duration(seconds: number): string {
  if (seconds < 90) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 90 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
