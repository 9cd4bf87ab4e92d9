/**
 * `watch` is `status --watch`: polls the daemon every two seconds until the owner ends the view, also while no daemon runs.
 *
 * Shows a full-screen view on a terminal, otherwise prints a line per change.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { DaemonStatus } from '../../control/daemon-status.js';
import { clean } from '../output/terminal.js';
import { jobOutlook, outlookText } from '../output/why-no-jobs.js';
import { frame } from './frame.js';
import { Screen } from './screen.js';
import { INITIAL_SNAPSHOT, type StatusPoller, type StatusSnapshot } from './status-poller.js';

const POLL_INTERVAL_MS = 2_000;
const CLOCK_MS = 1_000;
/** Includes Ctrl-C and Ctrl-D, which raw mode delivers as characters. */
const ENDING_KEYS = ['q', 'Q', '\u0003', '\u0004'];

/** Resolves when the owner ended the view. */
export async function watch(poller: StatusPoller): Promise<void> {
  const ended = new AbortController();
  const end = (): void => ended.abort();
  for (const signal of SIGNALS) process.once(signal, end);
  // The reader closed the pipe, as in `status --watch | head`.
  process.stdout.on('error', end);
  try {
    if (process.stdout.isTTY) await onScreen(poller, ended);
    else await inLines(poller, ended.signal);
  } finally {
    for (const signal of SIGNALS) process.removeListener(signal, end);
    process.stdout.removeListener('error', end);
  }
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

async function onScreen(poller: StatusPoller, ended: AbortController): Promise<void> {
  let snapshot: StatusSnapshot = INITIAL_SNAPSHOT;
  const redraw = (): void => screen.draw(frame(snapshot, screen.size, new Date()));
  const screen = new Screen({
    output: process.stdout,
    input: process.stdin.isTTY ? process.stdin : null,
    colours: process.env.NO_COLOR === undefined || process.env.NO_COLOR === '',
    onKey: (key) => {
      if (ENDING_KEYS.some((ending) => key.includes(ending))) ended.abort();
    },
    onRedraw: () => redraw(),
  });
  const clock = setInterval(redraw, CLOCK_MS);
  try {
    redraw();
    await pollRepeatedly(poller, ended.signal, (next) => {
      snapshot = next;
      redraw();
    });
  } finally {
    clearInterval(clock);
    screen.close();
  }
}

async function inLines(poller: StatusPoller, signal: AbortSignal): Promise<void> {
  let before = '';
  await pollRepeatedly(poller, signal, (snapshot) => {
    const text = plainLine(snapshot);
    if (text === before) return;
    before = text;
    process.stdout.write(`${new Date().toISOString().slice(0, 19)}Z  ${text}\n`);
  });
}

export function plainLine({ status, problem, earnings }: StatusSnapshot): string {
  if (status === null) return `not running: ${clean(problem ?? 'no answer')}`;
  const today = earnings === null ? '' : ` earned_today_micro_usd=${earnings.today.earned}`;
  return `${facts(status)}${today}  ${clean(outlookText(jobOutlook(status)))}`;
}

function facts({ state, connection, account, running_jobs, jobs }: DaemonStatus): string {
  return `${state} ${connection.state} account=${account.state} running=${running_jobs} done=${jobs.completed} failed=${jobs.failed}`;
}

async function pollRepeatedly(poller: StatusPoller, signal: AbortSignal, show: (snapshot: StatusSnapshot) => void): Promise<void> {
  const aborted = new Promise<null>((resolve) => signal.addEventListener('abort', () => resolve(null), { once: true }));
  while (!signal.aborted) {
    // The race ends the view even if the daemon is frozen.
    const snapshot = await Promise.race([poller.poll(signal), aborted]);
    if (snapshot === null) return;
    show(snapshot);
    await delay(POLL_INTERVAL_MS, undefined, { signal }).catch(() => {});
  }
}
