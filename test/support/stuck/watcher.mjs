/** Worker thread of watch.ts: kills a test process whose event loop is blocked, after printing stacks of the main thread. */

import { writeSync } from 'node:fs';
import { Session } from 'node:inspector';
import { parentPort, workerData } from 'node:worker_threads';

const CHECK_INTERVAL_MS = 1000;
/** Number of printed stacks. Several show which loop is running. */
const STACK_COUNT = 3;
const STACK_INTERVAL_MS = 100;
/** Time limit for the stacks. A main thread in native code cannot report any. */
const STACKS_TIMEOUT_MS = 3000;

const { beats, longestMs } = workerData;
const count = new Int32Array(beats);
let file = 'none yet';
let lastCount = -1;
let blockedMs = 0;

parentPort.on('message', (path) => {
  file = path ?? `after ${file}`;
});
const checking = setInterval(() => {
  const now = Atomics.load(count, 0);
  // Counts intervals instead of clock time, so that a suspended machine is not reported.
  blockedMs = now === lastCount ? blockedMs + CHECK_INTERVAL_MS : 0;
  lastCount = now;
  if (blockedMs >= longestMs) reportAndKill();
}, CHECK_INTERVAL_MS);

function reportAndKill() {
  clearInterval(checking);
  print(`\nThis test process has stood still for ${blockedMs / 1000} s and is ended. File: ${file}\n`);
  const session = new Session();
  const urls = new Map();
  let stacks = 0;
  session.on('Debugger.scriptParsed', ({ params }) => urls.set(params.scriptId, params.url));
  session.on('Debugger.paused', ({ params }) => {
    for (const { functionName, location } of params.callFrames) {
      print(`  at ${functionName || '(anonymous)'} (${urls.get(location.scriptId)}:${location.lineNumber + 1})\n`);
    }
    print('\n');
    session.post('Debugger.resume');
    stacks += 1;
    if (stacks < STACK_COUNT) setTimeout(() => session.post('Debugger.pause'), STACK_INTERVAL_MS);
    else kill();
  });
  session.connectToMainThread();
  session.post('Debugger.enable');
  session.post('Debugger.pause');
  setTimeout(() => {
    if (stacks === 0) print('  in native code\n');
    kill();
  }, STACKS_TIMEOUT_MS);
}

function kill() {
  process.kill(process.pid, 'SIGKILL');
}

/** Writes to stderr directly, because a worker's console needs the blocked main thread. */
function print(text) {
  writeSync(2, text);
}
