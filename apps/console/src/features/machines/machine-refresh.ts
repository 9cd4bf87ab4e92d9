/** `machineRefreshMs`: refresh of the page of one machine, for owners and operators. */
import { ApiError } from '../../api/api-error.js';

/** Time until the next refresh, in milliseconds. False: no machine has the id. Other errors may pass, so refreshing goes on. */
export function machineRefreshMs(error: Error | null, intervalMs: number): number | false {
  const isMissing = error instanceof ApiError && (error.status === 404 || error.status === 400);
  return isMissing ? false : intervalMs;
}
