/** `requestCost`: reads the cost of a request from the usage list, where the request appears shortly after its response. */
import type { ConsoleUsagePage } from '@inference/formats';
import { api } from '../../../api/api-client.js';

const MAX_TRIES = 8;
const PAUSE_MS = 400;
/** Number of requests that are read, because other requests of the account may be newer. */
const NEWEST_COUNT = 20;

/** Cost in micro-USD. Null: the list has no charge for the job in time, or cannot be read. */
export async function requestCost(jobId: string, signal: AbortSignal): Promise<number | null> {
  for (let tries = 0; tries < MAX_TRIES && !signal.aborted; tries++) {
    try {
      const { data } = await api.get<ConsoleUsagePage>('/console/v1/usage', { query: { limit: NEWEST_COUNT }, signal });
      const entry = data.find(({ request_id }) => request_id === jobId);
      if (entry !== undefined) return entry.cost_micro_usd;
    } catch {
      // The cost is optional here, because the usage page shows it too.
      return null;
    }
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
  return null;
}
