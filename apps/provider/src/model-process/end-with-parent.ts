/** `endWithParent` ends a model process with the daemon. */

/** Called once by the entry file of the process. */
export function endWithParent(): void {
  // The signals of a terminal reach the whole process group; the daemon decides when the engine ends.
  process.on('SIGINT', () => {});
  process.on('SIGTERM', () => {});
  // An ordinary exit would wait for native threads, and the process has no state to save.
  process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'));
}
