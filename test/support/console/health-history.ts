/** Mocks the health history API with an outage, because the network of a test is too young to have a history. */
import type { AdminHealthHistory } from '@inference/formats';
import type { BrowserContext } from 'playwright-core';

const MINUTE_MS = 60_000;
const START = Date.UTC(2026, 0, 5, 10);
/** First and last minute without a coordinator. */
const OUTAGE = { first: 20, last: 24 };

function pointAt(minute: number): AdminHealthHistory['data'][number] {
  const isDown = minute >= OUTAGE.first && minute <= OUTAGE.last;
  const busy = isDown ? 0 : 40 + (minute % 7);
  return {
    at: new Date(START + minute * MINUTE_MS).toISOString(),
    coordinators: isDown ? 0 : 2,
    requests: { delivered: busy, cancelled: busy === 0 ? 0 : 1, refused: busy === 0 ? 0 : 2, failed: busy % 3 },
    failures: busy % 3 === 0 ? [] : [{ code: 'no_provider', count: busy % 3 }],
    latency_ms: isDown ? null : { p50: 900 + busy, p95: 4000 + busy },
    first_token_ms: isDown ? null : { p50: 300 + busy, p95: 1200 + busy },
    queue: { average: busy / 10, max: busy },
    running_jobs: busy / 4,
    providers: isDown ? [] : [{ trust_level: 'hardware', average: 12 }],
    routable: isDown ? 0 : 11,
    slots: isDown ? 0 : 48,
    used_slots: busy / 4,
    event_loop_lag_ms: busy,
    ledger: isDown
      ? null
      : { owed_micro_usd: 9_000_000, reserved_micro_usd: busy, fees_micro_usd: minute, requested_withdrawals_micro_usd: 0, problems: 0 },
  };
}

/** Answers history requests of any range with one hour of data. */
export async function showHealthHistory(context: BrowserContext): Promise<void> {
  await context.route('**/admin/v1/health/history?*', (route) => {
    const range = new URL(route.request().url()).searchParams.get('range');
    const data = Array.from({ length: 60 }, (_, minute) => pointAt(minute));
    return route.fulfill({ json: { range, resolution: '1m', data } });
  });
}
