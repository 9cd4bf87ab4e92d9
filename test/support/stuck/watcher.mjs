/** Worker thread of watch.ts: kills a test process whose event loop is blocked, after printing stacks of the main thread. */

import { writeSync } from 'node:fs';
import { Session } from 'node:inspector';
import { parentPort, workerData } from 'node:worker_threads';

const LOOK_MS = 1000;
/** Number of printed stacks. Several show which loop is running. */
const STACKS = 3;
const BETWEEN_STACKS_MS = 100;
/** Time limit for the stacks. A main thread in native code cannot report any. */
const STACKS_MS = 3000;

const { beats, longestMs } = workerData;
const count = new Int32Array(beats);
let file = 'none yet';
let seen = -1;
let stillMs = 0;

parentPort.on('message', (path) => {
  file = path ?? `after ${file}`;
});
const looking = setInterval(() => {
  const now = Atomics.load(count, 0);
  // Counts intervals instead of clock time, so that a suspended machine is not reported.
  stillMs = now === seen ? stillMs + LOOK_MS : 0;
  seen = now;
  if (stillMs >= longestMs) end();
}, LOOK_MS);

function end() {
  clearInterval(looking);
  say(`\nThis test process has stood still for ${stillMs / 1000} s and is ended. File: ${file}\n`);
  const session = new Session();
  const urls = new Map();
  let stacks = 0;
  session.on('Debugger.scriptParsed', ({ params }) => urls.set(params.scriptId, params.url));
  session.on('Debugger.paused', ({ params }) => {
    for (const { functionName, location } of params.callFrames) {
      say(`  at ${functionName || '(anonymous)'} (${urls.get(location.scriptId)}:${location.lineNumber + 1})\n`);
    }
    say('\n');
    session.post('Debugger.resume');
    stacks += 1;
    if (stacks < STACKS) setTimeout(() => session.post('Debugger.pause'), BETWEEN_STACKS_MS);
    else kill();
  });
  session.connectToMainThread();
  session.post('Debugger.enable');
  session.post('Debugger.pause');
  setTimeout(() => {
    if (stacks === 0) say('  in native code\n');
    kill();
  }, STACKS_MS);
}

function kill() {
  process.kill(process.pid, 'SIGKILL');
}

/** Writes to stderr directly, because a worker's console needs the blocked main thread. */
function say(text) {
  writeSync(2, text);
}
