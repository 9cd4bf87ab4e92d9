/** `startTraffic`: sends text requests to every endpoint of `ask`, and verifies the responses, while a test causes faults. */
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'vitest';
import type { Customers } from './customers.js';
import { type Script, textOf } from './light/script.js';
import { type Access, ask, ENDPOINTS } from './verified-client.js';

export interface BackgroundTraffic {
  /** Requests with a correct response. */
  readonly answered: number;
  /** Problems, one line each. */
  readonly failures: readonly string[];
  /** Time of each correct response, in milliseconds, oldest first. */
  readonly times: readonly number[];
  stop(): Promise<void>;
}

export interface TrafficOptions {
  readonly access: Access;
  readonly model: string;
  /** Clients, one request at a time each. */
  readonly clients: number;
  readonly script?: Script;
  /** Pause of a client between two requests, in milliseconds. */
  readonly pauseMs?: number;
}

export function startTraffic({ access, model, clients, script = { words: 12 }, pauseMs = 25 }: TrafficOptions): BackgroundTraffic {
  const ending = new AbortController();
  const failures: string[] = [];
  const times: number[] = [];
  let number = 0;
  const client = async (): Promise<void> => {
    while (!ending.signal.aborted) {
      const index = number++;
      const endpoint = ENDPOINTS[(index >> 1) % ENDPOINTS.length] as (typeof ENDPOINTS)[number];
      const stream = index % 2 === 0;
      const started = performance.now();
      try {
        const answer = await ask(access, { model, endpoint, stream, prompt: script });
        if (answer.kind !== 'verified') failures.push(`${endpoint} ${stream}: ${JSON.stringify(answer)}`);
        else if (answer.text !== textOf(script)) failures.push(`${endpoint} ${stream}: another text, ${answer.text.length} characters`);
        else times.push(performance.now() - started);
      } catch (error) {
        failures.push(`${endpoint} ${stream}: ${error}`);
      }
      await pause(pauseMs, undefined, { signal: ending.signal }).catch(() => {});
    }
  };
  const running = Promise.all(Array.from({ length: clients }, client));
  return {
    get answered() {
      return times.length;
    },
    failures,
    times,
    async stop() {
      ending.abort();
      await running;
    },
  };
}

/** Requires that further requests succeed and that the ledger balances. */
export async function expectUnaffected(traffic: BackgroundTraffic, customers: Customers): Promise<void> {
  const before = traffic.answered;
  await expect.poll(() => traffic.answered).toBeGreaterThan(before);
  expect(traffic.failures).toEqual([]);
  expect(await customers.ledgerProblems()).toEqual([]);
}
