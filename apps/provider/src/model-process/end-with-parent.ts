/** How a process that holds a model ends: with the daemon that started it, and by nothing else. */

/** Called once by the process's entry. */
export function endWithParent(): void {
  // The signals of a terminal reach the whole process group; the daemon decides when the engine ends.
  process.on('SIGINT', () => {});
  process.on('SIGTERM', () => {});
  // An ordinary exit would wait for native threads; there is nothing here to save.
  process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'));
}
