/** A stranger who tries a hundred passwords at once, against the real program. */
import { afterEach, describe, expect, it } from 'vitest';
import { type CoordinatorProgram, startProgram } from '../support/coordinator-program.js';
import { MODEL, until } from '../support/harness.js';
import { ScriptedProvider } from '../support/scripted-provider.js';

/** As many as may wait. */
const SIGN_INS = 128;
const WAITING = 'inference_password_hashes{state="waiting"}';
const RUNNING = 'inference_password_hashes{state="running"}';

describe('more than a hundred wrong sign-ins at once', () => {
  let coordinator: CoordinatorProgram;
  afterEach(() => coordinator.close());

  /** Wrong sign-ins that wait for a response. `answered`: count of responses so far. */
  function flood(addressOf: (index: number) => string): { answered: () => number; leave: () => Promise<void> } {
    const left = new AbortController();
    let answered = 0;
    const all = Array.from({ length: SIGN_INS }, async (_, index) => {
      try {
        await fetch(`${coordinator.url}/console/auth/sign-in/email`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', origin: coordinator.url, 'x-forwarded-for': addressOf(index) },
          body: JSON.stringify({ email: `nobody-${index}@example.com`, password: 'a wrong password' }),
          signal: left.signal,
        });
        answered++;
      } catch (error) {
        if (!left.signal.aborted) throw error;
      }
    });
    return {
      answered: () => answered,
      async leave() {
        left.abort();
        await Promise.all(all);
        // A disconnected client frees its place in the queue.
        await until(async () => (await coordinator.metric(WAITING)) === 0);
      },
    };
  }

  it('delay no chat: two are hashed at a time, and the verification of answers does not wait for them', async () => {
    coordinator = await startProgram({ TRUSTED_PROXIES: '127.0.0.0/8', RATE_LIMIT_SIGN_IN: '0', RATE_LIMIT_EMAIL: '0' });
    const provider = await ScriptedProvider.connect(coordinator.url, { models: [MODEL] });
    const chat = async (stream: boolean): Promise<number> => {
      const body = JSON.stringify({ model: MODEL, stream, messages: [{ role: 'user', content: 'hi' }] });
      const headers = { authorization: `Bearer ${coordinator.apiKey}`, 'content-type': 'application/json' };
      const answer = await fetch(`${coordinator.url}/v1/chat/completions`, { method: 'POST', headers, body });
      await answer.text();
      return answer.status;
    };
    for (let round = 0; round < 2; round++) {
      const attack = flood((index) => `10.${round}.0.${index}`);
      await until(async () => (await coordinator.metric(WAITING)) > 80);
      expect(await coordinator.metric(RUNNING)).toBeLessThanOrEqual(2);
      expect([await chat(false), await chat(true)]).toEqual([200, 200]);
      // All sign-ins arrived first: on a shared thread pool these chats would be last.
      expect(attack.answered()).toBeLessThan(SIGN_INS - 8);
      await attack.leave();
    }
    provider.close();
  });
});
