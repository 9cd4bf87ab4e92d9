/** `startVerifiedTraffic`: a client that verifies every response, and counts the outcomes. For the soak test `agent`. */
import { setTimeout as delay } from 'node:timers/promises';
import { type Access, ask, BadAnswer } from '../../test/support/verified-client.js';

/** Sends requests one after the other until `stop`. Wrong responses are added to `problems`. */
export function startVerifiedTraffic(access: Access, problems: string[]) {
  const stop = new AbortController();
  const counts = { verified: 0, refused: 0, broken: 0 };
  let waiting: (() => void)[] = [];
  const running = (async () => {
    for (let number = 0; !stop.signal.aborted; number++) {
      try {
        // A frozen coordinator does not answer; the client retries.
        const signal = AbortSignal.any([stop.signal, AbortSignal.timeout(15_000)]);
        const { kind } = await ask(access, { model: 'pico-demo', stream: number % 2 === 0, prompt: 'Hello!', maxTokens: 8, signal });
        counts[kind]++;
        if (kind === 'verified') for (const resolve of waiting.splice(0)) resolve();
      } catch (error) {
        if (error instanceof BadAnswer) problems.push(error.message);
        counts.broken++;
      }
      await delay(100, undefined, { signal: stop.signal }).catch(() => {});
    }
  })();
  return {
    counts,
    /** Whether a request sent after the call is answered and verified within the time. */
    async verifiedWithin(ms: number): Promise<boolean> {
      const timer = new AbortController();
      const late = delay(ms, false, { signal: timer.signal }).catch(() => false);
      const next = (): Promise<void> => new Promise((resolve) => waiting.push(resolve));
      // The first response may belong to an earlier request.
      const verified = next()
        .then(next)
        .then(() => true);
      const result = await Promise.race([verified, late]);
      timer.abort();
      waiting = [];
      return result;
    },
    async stop(): Promise<void> {
      stop.abort();
      await running;
    },
  };
}
