/** `AttackedNetwork`: end-to-end clients, a malicious relay, and behind the relay a coordinator with light agents. */
import { createVerifiedFetch, type E2eVerdict, memoryStore, type PolicyInput, type Store } from '@inference/client';
import OpenAI from 'openai';
import { expect } from 'vitest';
import { type Harness, NO_RATE_LIMITS, startHarness, until } from '../../apps/coordinator/test/support/harness.js';
import { LightAgent, type LightOptions } from './light/agent.js';
import { MaliciousCoordinator } from './malicious-coordinator.js';

export const MODEL = 'light/end-to-end';
const CANARY = 'canary-5d1f';
const SCRIPT = { words: 50, length: 8000 };
/** Characters of the answer; enough for several frames, streamed or not. */
export const ANSWER_LENGTH = SCRIPT.words * SCRIPT.length;
/** Script of the answer, and text that must not leave the client in clear. */
export const PROMPT = JSON.stringify({ ...SCRIPT, canary: `${CANARY}: read by the answering machine alone` });
const MAX_TOKENS = 100;

export interface ClientOptions {
  readonly apiKey?: string;
  readonly policy?: PolicyInput;
  readonly store?: Store;
  readonly signal?: AbortSignal;
  /** Retries of the SDK. Default: 0. */
  readonly maxRetries?: number;
}

export interface Outcome {
  readonly text: string;
  /** Whether the SDK accepted the answer as complete. */
  readonly isComplete: boolean;
  readonly error: { readonly name?: string; readonly code?: string; readonly status?: number } | null;
  readonly verdicts: readonly E2eVerdict[];
}

export class AttackedNetwork {
  private constructor(
    readonly harness: Harness,
    readonly coordinator: MaliciousCoordinator,
    readonly agents: readonly LightAgent[],
    /** Verifier key of the coordinator's transparency log. */
    readonly logKey: string,
  ) {}

  /** Starts three agents. `random: () => 0` makes the coordinator try a request's candidates in order. */
  static async start(options: Pick<LightOptions, 'onE2eJob'> = {}): Promise<AttackedNetwork> {
    const harness = await startHarness({ random: () => 0, config: { rateLimits: NO_RATE_LIMITS } });
    const agents: LightAgent[] = [];
    for (let index = 0; index < 3; index++) agents.push(await LightAgent.join({ url: harness.url, models: [MODEL], ...options }));
    await until(async () => {
      const keyset = (await (await fetch(`${harness.url}/v1/e2e/keyset`)).json()) as { providers: unknown[] };
      return keyset.providers.length === agents.length;
    });
    const logKey = (await (await fetch(`${harness.url}/e2e/log/key`)).text()).trim();
    return new AttackedNetwork(harness, await MaliciousCoordinator.start(harness.url), agents, logKey);
  }

  /** One chat completion of a new client, with the official SDK. */
  async ask(
    stream: boolean,
    { apiKey = this.harness.apiKey, policy, store = memoryStore(), signal, maxRetries = 0 }: ClientOptions = {},
  ): Promise<Outcome> {
    const verdicts: E2eVerdict[] = [];
    const baseURL = `${this.coordinator.address}/v1`;
    const onVerdict = (verdict: E2eVerdict): void => void verdicts.push(verdict);
    const fetch = createVerifiedFetch({ baseURL, policy: { allowSimulated: true, ...policy }, store, onVerdict });
    const client = new OpenAI({ baseURL, apiKey, fetch, maxRetries });
    const request = { model: MODEL, max_tokens: MAX_TOKENS, messages: [{ role: 'user' as const, content: PROMPT }] };
    const options = signal === undefined ? {} : { signal };
    let text = '';
    try {
      if (stream) {
        const events = await client.chat.completions.create({ ...request, stream }, options);
        for await (const { choices } of events) text += choices[0]?.delta.content ?? '';
      } else text = (await client.chat.completions.create(request, options)).choices[0]?.message.content ?? '';
      return { text, isComplete: true, error: null, verdicts };
    } catch (error) {
      return { text, isComplete: false, error: error as Outcome['error'], verdicts };
    }
  }

  /** Requires that no byte of the prompt reached the relay in clear. */
  requireNoPlaintext(): void {
    expect(this.coordinator.received.length).toBeGreaterThan(0);
    for (const request of this.coordinator.received) expect(request).not.toContain(CANARY);
  }

  async close(): Promise<void> {
    for (const agent of this.agents) agent.leave();
    await this.coordinator.close();
    await this.harness.close();
  }
}
