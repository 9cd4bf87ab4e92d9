import { afterAll, beforeAll, expect, test } from 'vitest';
import { MODEL } from '../support/harness.js';
import { startTwoCoordinators, type TwoCoordinators } from './two-coordinators.js';

let cluster: TwoCoordinators;

beforeAll(async () => {
  cluster = await startTwoCoordinators();
  await cluster.far.provider();
});
afterAll(() => cluster.close());

const chat = (body: Record<string, unknown> = {}, headers: Record<string, string> = {}) =>
  cluster.near.chat(body, { headers: { authorization: `Bearer ${cluster.far.apiKey}`, ...headers } });

test('a client of one coordinator gets the answer of a provider at another', async () => {
  await new Promise((r) => setTimeout(r, 2500));
  const response = await chat();
  const text = await response.text();
  console.log(response.status, text, Object.fromEntries(response.headers));
  console.log(
    cluster.near.log
      .filter((l) => !l.includes('"level":10'))
      .slice(-12)
      .join(''),
  );
  expect(response.status).toBe(200);
});
test('stream', async () => {
  const response = await chat({ stream: true });
  const text = await response.text();
  console.log(response.status, text);
  expect(response.status).toBe(200);
  console.log(await cluster.far.money(), MODEL);
});
