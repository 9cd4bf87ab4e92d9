/** Cost of a request from the usage list, where a request appears shortly after its response. */
import type { ConsoleUsagePage } from '@inference/formats';
import { api } from '../../../api/api-client.js';

const TRIES = 8;
const PAUSE_MS = 400;
/** Newer requests of the account may precede the request in the list. */
const LOOKED_AT = 20;

/** Micro-USD; null if the job is not listed in time. Uncharged jobs are never listed. */
export async function requestCost(jobId: string, signal: AbortSignal): Promise<number | null> {
  for (let tries = 0; tries < TRIES && !signal.aborted; tries++) {
    try {
      const { data } = await api.get<ConsoleUsagePage>('/console/v1/usage', { query: { limit: LOOKED_AT }, signal });
      const entry = data.find(({ request_id }) => request_id === jobId);
      if (entry !== undefined) return entry.cost_micro_usd;
    } catch {
      // A missing cost is tolerable: the usage page also shows the cost.
      return null;
    }
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
  return null;
}
