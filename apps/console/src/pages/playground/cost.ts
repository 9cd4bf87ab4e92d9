/** What a request has cost, from the usage list, where it stands a moment after its answer. */
import type { ConsoleUsageEntry } from '@inference/formats';
import { api } from '../../app/api-client.js';
import { ApiError } from '../../app/api-error.js';

const TRIES = 8;
const PAUSE_MS = 400;

/** Micro-USD; null when it is not listed: nothing was delivered and nothing charged, or it takes longer than anyone waits. */
export async function costOf(jobId: string, signal: AbortSignal): Promise<number | null> {
  for (let tries = 0; tries < TRIES && !signal.aborted; tries++) {
    try {
      const entry = await api.get<ConsoleUsageEntry>(`/console/v1/usage/${encodeURIComponent(jobId)}`, { signal });
      return entry.cost_micro_usd;
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 404) return null;
    }
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
  return null;
}
