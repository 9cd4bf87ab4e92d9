/** `endWithParent`: a model process ends when the daemon ends, and not before. Called once by its entry file. */
export function endWithParent(): void {
  // Signals of a terminal reach all processes, but the daemon decides when this one ends.
  process.on('SIGINT', () => {});
  process.on('SIGTERM', () => {});
  // An ordinary exit would wait for native threads. There is no state to save.
  process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'));
}
