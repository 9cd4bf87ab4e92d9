/** `ProgressLine` reports the progress of a download, with rate and remaining time. On a terminal, also draws a bar. */
import type { Progress } from '../../models/store/transfer.js';
import { fit, widthOf } from './columns.js';

interface ProgressReport {
  readonly phase: Progress['phase'];
  readonly bytes: number;
  readonly total: number | null;
  readonly bytes_per_second: number | null;
  readonly seconds_left: number | null;
}

const REPORT_INTERVAL_MS = 500;
const RATE_WINDOW_MS = 10_000;

export class ProgressLine {
  #samples: { readonly at: number; readonly bytes: number }[] = [];
  #phase: Progress['phase'] | null = null;
  #printedAt = Number.NEGATIVE_INFINITY;
  #isShown = false;

  constructor(
    private readonly output: { readonly isTTY?: boolean; readonly columns?: number; write(text: string): unknown },
    private readonly now: () => number,
  ) {}

  /** Returns a report twice a second, at each new phase and at the end; null in between. */
  update({ phase, bytes, total }: Progress): ProgressReport | null {
    const at = this.now();
    if (phase !== this.#phase) {
      this.#phase = phase;
      this.#samples = [];
      this.#printedAt = Number.NEGATIVE_INFINITY;
    }
    if (at - this.#printedAt < REPORT_INTERVAL_MS && bytes !== total) return null;
    this.#printedAt = at;
    this.#samples = [...this.#samples.filter((sample) => at - sample.at < RATE_WINDOW_MS), { at, bytes }];
    const first = this.#samples[0] as { readonly at: number; readonly bytes: number };
    const rate = at > first.at ? ((bytes - first.bytes) / (at - first.at)) * 1000 : null;
    const left = rate === null || rate <= 0 || total === null ? null : Math.ceil((total - bytes) / rate);
    const report = { phase, bytes, total, bytes_per_second: rate === null ? null : Math.round(rate), seconds_left: left };
    if (this.output.isTTY === true) {
      this.output.write(`\r\x1b[K${lineOf(report, this.output.columns || DEFAULT_COLUMNS)}`);
      this.#isShown = true;
    }
    return report;
  }

  end(): void {
    if (this.#isShown) this.output.write('\n');
    this.#isShown = false;
  }
}

const DEFAULT_COLUMNS = 80;
const MAX_BAR = 30;
/** A narrower bar is omitted, because the numbers need the space. */
const MIN_BAR = 5;

/** The bar fills the space that the numbers leave. */
function lineOf({ phase, bytes, total, bytes_per_second, seconds_left }: ProgressReport, columns: number): string {
  const rate = bytes_per_second === null ? '' : `  ${formatBytes(bytes_per_second)}/s`;
  const left = seconds_left === null ? '' : `  ${duration(seconds_left)} left`;
  if (total === null || total === 0) return fit(`${phase} ${formatBytes(bytes)}${rate}${left}`, columns);
  const share = Math.min(1, bytes / total);
  const numbers = `${String(Math.floor(100 * share)).padStart(3)}%  ${formatBytes(bytes)} of ${formatBytes(total)}${rate}${left}`;
  // The last column stays free: some terminals wrap a full line.
  const room = Math.min(MAX_BAR, columns - 1 - widthOf(`${phase}   ${numbers}`));
  return fit(room < MIN_BAR ? `${phase} ${numbers}` : `${phase} ${bar(share, room)}  ${numbers}`, columns - 1);
}

function bar(share: number, width: number): string {
  const filled = Math.floor(share * width);
  return '█'.repeat(filled) + '░'.repeat(width - filled);
}

function formatBytes(bytes: number): string {
  return bytes < 1e9 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e9).toFixed(2)} GB`;
}

function duration(seconds: number): string {
  if (seconds < 90) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 90 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
