/** A machine that accepts images and never completes them, and its owner's requests, against the real program. */
import { afterEach, expect, it } from 'vitest';
import { paint } from '../images/pictures.js';
import { Browser } from '../support/console-client.js';
import { type CoordinatorProgram, startProgram } from '../support/coordinator-program.js';
import { errorOf, until } from '../support/harness.js';
import { IMAGE_SIZES, ScriptedProvider } from '../support/scripted-provider.js';

const ATTACKERS_SIZES = ['2048x2048', '1024x1024', '512x512', '128x128'];

let coordinator: CoordinatorProgram;
const providers: ScriptedProvider[] = [];
afterEach(async () => {
  for (const provider of providers.splice(0)) provider.close();
  await coordinator.close();
});

it('a machine that never answers reserves no room: a paying client gets every image', async () => {
  coordinator = await startProgram({ IMAGE_STORE_MB: '270', RATE_LIMIT_SIGN_IN: '0' });
  const connect = async (model: string, sizes: readonly string[], onJob: (job: Parameters<typeof paint>[0]) => void | Promise<void>) => {
    const image = { sizes: [...sizes], max_images: 4 };
    const provider = await ScriptedProvider.connect(coordinator.url, { models: [model], image, onJob });
    providers.push(provider);
    return provider;
  };
  const staller = await connect('attack/never', ATTACKERS_SIZES, (job) => job.accept());
  await connect('honest/image', IMAGE_SIZES, paint);
  const attacker = new Browser(coordinator.url);
  await attacker.signUp('attacker@example.com');
  await attacker.post('/console/v1/deposits/development', { amount_micro_usd: 10_000_000 });
  const { secret } = await attacker.newKey();
  const generate = (key: string, body: Record<string, unknown>, signal?: AbortSignal): Promise<Response> =>
    fetch(`${coordinator.url}/v1/images/generations`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ prompt: 'a red square', ...body }),
      ...(signal === undefined ? {} : { signal }),
    });

  const left = new AbortController();
  let sent = 0;
  let refused = 0;
  const attack: Promise<unknown>[] = [];
  // Decreasing sizes, until the budget is exhausted.
  for (const size of ATTACKERS_SIZES) {
    for (const n of [4, 1]) {
      for (let count = 0; count < 5; count++) {
        sent++;
        const answered = generate(secret, { model: 'attack/never', size, n }, left.signal).then(async (answer) => {
          expect((await errorOf(answer)).code).toBe('images_unavailable');
          refused++;
        });
        attack.push(answered.catch((error: unknown) => (left.signal.aborted ? null : Promise.reject(error))));
      }
      // Every request is refused, on the machine or in its queue.
      await until(async () => refused + staller.jobs.size + (await coordinator.metric('inference_queue_length')) === sent);
    }
  }
  expect(staller.jobs.size).toBeGreaterThan(0);

  for (let count = 0; count < 10; count++) {
    const answer = await generate(coordinator.apiKey, { model: 'honest/image' });
    expect(answer.status).toBe(200);
    const { data } = (await answer.json()) as { data: { url: string }[] };
    expect((await fetch(data[0]?.url ?? '')).status).toBe(200);
  }
  left.abort();
  await Promise.all(attack);
  const balance = (await (await attacker.get('/console/v1/balance')).json()) as Record<string, number>;
  expect(balance.balance_micro_usd).toBe(10_000_000);
});
