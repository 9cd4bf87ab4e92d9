/** Words for the time before the first word of an answer. */

/** `placed`: a machine has taken the request. */
export function formatWait(placed: boolean): string {
  return placed ? 'The machine reads…' : 'Waiting for a machine…';
}
