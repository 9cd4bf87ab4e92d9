/** `machineRefreshMs`: refresh interval of the pages about one machine, for owners and for operators. */
import { ApiError } from '../../api/api-error.js';

/** Milliseconds until the next refresh. False: stop, because no machine has the id. Other errors may be temporary. */
export function machineRefreshMs(error: Error | null, intervalMs: number): number | false {
  const isMissing = error instanceof ApiError && (error.status === 404 || error.status === 400);
  return isMissing ? false : intervalMs;
}
