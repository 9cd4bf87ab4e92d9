/**
 * Waits until a daemon that was started shows itself on its control socket, and has begun to serve or goes on starting for a while;
 * or until it is clear that it cannot start.
 */
import { readFileSync, statSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { ControlError, requestStatus } from '../control/control-client.js';
import type { DaemonStatus } from '../control/daemon-status.js';

const LOOK_MS = 100;
/** What is wrong with its models shows itself by then; large ones go on loading for minutes. */
const STARTING_MS = 10_000;
const ANSWER_MS = 2_000;

export interface StartWait {
  readonly dataDir: string;
  /** Takes what a failed start says. */
  readonly outputFile: string;
  /** Process that ran before; another one is waited for. */
  readonly before: number | null;
  readonly limitMs: number;
}

/** Size of the file that takes what a failed start says, to tell new words from old ones. */
export function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

/** Null, with what it said, where none comes. */
export async function awaitDaemon(
  { dataDir, outputFile, before, limitMs }: StartWait,
  saidBefore: number,
): Promise<{ readonly status: DaemonStatus | null; readonly said: string | null }> {
  const deadline = performance.now() + limitMs;
  let shownAt: number | null = null;
  for (;;) {
    try {
      const status = await requestStatus(dataDir, ANSWER_MS);
      if (status.pid !== before) {
        shownAt ??= performance.now();
        if (status.state !== 'starting' || performance.now() - shownAt > STARTING_MS) return { status, said: null };
      }
    } catch (error) {
      if (!(error instanceof ControlError)) throw error;
      // A daemon that loads slowly is silent; one that says something about its start has ended.
      const said = wordsSince(outputFile, saidBefore);
      if (said !== null && error.problem === 'not_running') return { status: null, said };
    }
    if (performance.now() > deadline) return { status: null, said: wordsSince(outputFile, saidBefore) };
    await delay(LOOK_MS);
  }
}

/** The last line that was added to a file. */
function wordsSince(path: string, size: number): string | null {
  try {
    const added = readFileSync(path).subarray(size).toString('utf8').trim();
    return added === '' ? null : (added.split('\n').at(-1) ?? null);
  } catch {
    return null;
  }
}
