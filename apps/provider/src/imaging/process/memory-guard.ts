/**
 * Ends this process when it takes more memory than it was given. A thread of its own looks, because the main one stands still
 * while a step is computed; a model that lies about what it needs then costs its own process, and not the owner's machine.
 */
import { Worker } from 'node:worker_threads';

const LOOK_EVERY_MS = 100;

const GUARD = `
const { workerData } = require('node:worker_threads');
const { writeSync } = require('node:fs');
setInterval(() => {
  if (process.memoryUsage.rss() <= workerData.limit) return;
  writeSync(2, 'the image process took more memory than it may: it is ended\\n');
  process.kill(process.pid, 'SIGKILL');
}, workerData.everyMs);
`;

/** `limit` in bytes, of the whole process. */
export function guardMemory(limit: number): void {
  const guard = new Worker(GUARD, { eval: true, workerData: { limit, everyMs: LOOK_EVERY_MS } });
  guard.unref();
}
