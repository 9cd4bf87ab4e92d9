/** Polls the control socket of a started daemon until the daemon serves or fails, still loads after 10 s, or a limit passes. */
import { readFileSync, statSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { ControlError, requestStatus } from '../control/control-client.js';
import type { DaemonStatus } from '../control/daemon-status.js';

const POLL_MS = 100;
/** Model errors appear within this time; large models load for minutes. */
const STARTING_MS = 10_000;
const ANSWER_MS = 2_000;

interface StartWait {
  readonly dataDir: string;
  /** Receives the output of a failed start. */
  readonly outputFile: string;
  /** Process id of the previous daemon; null if none ran. */
  readonly previousPid: number | null;
  readonly limitMs: number;
}

/** Size of the output file before the start, so that only new output is read. */
export function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

/** Resolves to the status of the new daemon. If none answered, resolves to null and the last line of output. */
export async function awaitDaemon(
  { dataDir, outputFile, previousPid, limitMs }: StartWait,
  outputSizeBefore: number,
): Promise<{ readonly status: DaemonStatus | null; readonly output: string | null }> {
  const deadline = performance.now() + limitMs;
  let firstStatusAt: number | null = null;
  for (;;) {
    try {
      const status = await requestStatus(dataDir, ANSWER_MS);
      if (status.pid !== previousPid) {
        firstStatusAt ??= performance.now();
        if (status.state !== 'starting' || performance.now() - firstStatusAt > STARTING_MS) return { status, output: null };
      }
    } catch (error) {
      if (!(error instanceof ControlError)) throw error;
      // A loading daemon prints nothing; output means that its start failed.
      const output = outputSince(outputFile, outputSizeBefore);
      if (output !== null && error.problem === 'not_running') return { status: null, output };
    }
    if (performance.now() > deadline) return { status: null, output: outputSince(outputFile, outputSizeBefore) };
    await delay(POLL_MS);
  }
}

/** Last line added to a file after the given size. */
function outputSince(path: string, size: number): string | null {
  try {
    const added = readFileSync(path).subarray(size).toString('utf8').trim();
    return added === '' ? null : (added.split('\n').at(-1) ?? null);
  } catch {
    return null;
  }
}
