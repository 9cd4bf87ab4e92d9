/** What a request has cost, from the usage list, where it stands a moment after its answer. */
import type { ConsoleUsagePage } from '@inference/formats';
import { api } from '../../../api/api-client.js';

const TRIES = 8;
const PAUSE_MS = 400;
/** Others of the same account may have come in between. */
const LOOKED_AT = 20;

/** Micro-USD; null when it is not listed: nothing was delivered and nothing charged, or it takes longer than anyone waits. */
export async function costOf(jobId: string, signal: AbortSignal): Promise<number | null> {
  for (let tries = 0; tries < TRIES && !signal.aborted; tries++) {
    try {
      const { data } = await api.get<ConsoleUsagePage>('/console/v1/usage', { query: { limit: LOOKED_AT }, signal });
      const entry = data.find(({ request_id }) => request_id === jobId);
      if (entry !== undefined) return entry.cost_micro_usd;
    } catch {
      // It is an aside: the answer stands without it, and the usage page tells it, too.
      return null;
    }
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
  return null;
}
