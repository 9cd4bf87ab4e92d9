/** `Load`: clients of a soaked cluster that send requests until `stop`. Verifies the answers and records failures. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Receipt } from '@inference/protocol';
import type { Customer } from '../../../test/support/customers.js';
import { type Script, textOf } from '../../../test/support/light/script.js';
import { ask, BadAnswer } from '../../../test/support/verified-client.js';
import { requestImage } from './image-request.js';
import { LIGHT_MODEL, type SoakCluster } from './soak-cluster.js';

export interface Outcome {
  /** Start, by `performance.now()`. */
  readonly startedAt: number;
  readonly endedAt: number;
  /** Index of the coordinator that the client connects to. Null: the balancer chooses. */
  readonly coordinator: number | null;
  readonly model: string;
  readonly stream: boolean;
  /**
   * An error response is `refused`, a stream with an error event `broken`, an incomplete response `cut`. A `late` request exceeded its
   * time limit. Any other unverified answer is `bad`.
   */
  readonly kind: 'verified' | 'refused' | 'broken' | 'cut' | 'late' | 'bad';
  /** Status and code of an error response, code of an error event, or an error message. */
  readonly detail: string;
}

export interface PaidAnswer {
  readonly receipt: Receipt;
  readonly account: Customer;
  readonly startedAt: number;
  readonly endedAt: number;
}

/** Text endpoints. Omits `messages`, whose errors have no codes. */
const ENDPOINTS = ['/v1/chat/completions', '/v1/completions', '/v1/responses'] as const;
const BALANCED_CLIENTS = 5;
const REAL_CLIENTS = 1;
const PAUSE_MS = 100;
const REAL_PAUSE_MS = 1_000;
const IMAGE_PAUSE_MS = 5_000;
const PAUSE_AFTER_ERROR_MS = 250;
/** Time limit of a request; longer than any fault. */
const MAX_ANSWER_MS = 45_000;
/** Time limit of an image, download included. */
const MAX_IMAGE_MS = 90_000;

interface ClientOptions {
  readonly account: Customer;
  /** As in {@link Outcome}. */
  readonly coordinator: number | null;
  readonly model: string;
  readonly pauseMs: number;
  /** Address of the coordinator from which images are downloaded; absent for text models. */
  readonly fetchFrom?: string;
}

export class Load {
  readonly #stop = new AbortController();
  readonly #cancelled: AbortSignal;
  readonly #random: () => number;
  readonly #canary: string;
  #running: Promise<unknown> = Promise.resolve();
  /** Outcomes other than `verified`. */
  readonly failures: Outcome[] = [];
  readonly paid: PaidAnswer[] = [];
  sent = 0;
  /** Verified images. */
  images = 0;

  /** Every prompt contains `canary`. The signal `cancelled` ends running requests. */
  constructor(soak: SoakCluster, canary: string, random: () => number, cancelled: AbortSignal) {
    const { accounts, coordinators, network, realModel } = soak;
    this.#cancelled = cancelled;
    this.#random = random;
    this.#canary = canary;
    const account = (index: number): Customer => accounts[index % accounts.length] as Customer;
    const light = { coordinator: null, model: LIGHT_MODEL, pauseMs: PAUSE_MS };
    const clients: ClientOptions[] = [
      ...Array.from({ length: BALANCED_CLIENTS }, (_, index) => ({ ...light, account: account(index) })),
      ...coordinators.map(({ url, index }) => ({ ...light, account: { ...account(index), baseUrl: url }, coordinator: index })),
      // Images are requested from each coordinator, and downloaded from the next one.
      ...coordinators.map(({ url, index }) => {
        const fetchFrom = coordinators[(index + 1) % coordinators.length]?.url ?? url;
        const maker = { account: { ...account(index), baseUrl: url }, coordinator: index };
        return { ...maker, model: soak.imageModel, pauseMs: IMAGE_PAUSE_MS, fetchFrom };
      }),
      ...Array.from({ length: REAL_CLIENTS }, (_, index) => {
        return { ...light, account: { ...account(index), baseUrl: network.baseUrl }, model: realModel, pauseMs: REAL_PAUSE_MS };
      }),
    ];
    this.#running = Promise.all(clients.map((client) => this.#client(client)));
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #client({ account, coordinator, model, pauseMs, fetchFrom }: ClientOptions): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted && !this.#cancelled.aborted) {
      this.sent++;
      const stream = fetchFrom === undefined && this.#random() < 0.6;
      const startedAt = performance.now();
      const end = (kind: Outcome['kind'], detail: string): void => {
        this.failures.push({ startedAt, endedAt: performance.now(), coordinator, model, stream, kind, detail });
      };
      let isVerified = false;
      try {
        const receipt =
          fetchFrom === undefined ? await this.#request(account, model, stream, end) : await this.#image(account, model, fetchFrom, end);
        isVerified = receipt !== null;
        if (fetchFrom !== undefined && isVerified) this.images++;
        if (receipt !== null) this.paid.push({ receipt, account, startedAt, endedAt: performance.now() });
      } catch (error) {
        if (this.#cancelled.aborted) return;
        if (error instanceof BadAnswer) end('bad', error.message);
        else if (error instanceof Error && error.name === 'TimeoutError') end('late', error.message);
        else end('cut', String((error as Error).cause ?? error));
      }
      await delay(isVerified ? pauseMs : PAUSE_AFTER_ERROR_MS, undefined, { signal }).catch(() => {});
    }
  }

  /** Requests an image. Resolves to its receipt, or to null after an error response, which is passed to `end`. */
  async #image(
    access: Customer,
    model: string,
    fetchFrom: string,
    end: (kind: Outcome['kind'], detail: string) => void,
  ): Promise<Receipt | null> {
    const signal = AbortSignal.any([AbortSignal.timeout(MAX_IMAGE_MS), this.#cancelled]);
    const seed = Math.floor(this.#random() * 1_000_000);
    const prompt = `a red circle on a blue background ${this.#canary}`;
    const outcome = await requestImage({ access, fetchFrom, model, prompt, seed, signal });
    if (outcome.kind === 'verified') return outcome.receipt;
    end('refused', `${outcome.status} ${outcome.code}`);
    return null;
  }

  /** Sends a text request. Resolves to its receipt, or to null after an error response or event, which is passed to `end`. */
  async #request(
    account: Customer,
    model: string,
    stream: boolean,
    end: (kind: Outcome['kind'], detail: string) => void,
  ): Promise<Receipt | null> {
    const signal = AbortSignal.any([AbortSignal.timeout(MAX_ANSWER_MS), this.#cancelled]);
    const script = model === LIGHT_MODEL ? this.#script() : null;
    const answer = await ask(account, {
      model,
      stream,
      signal,
      ...(script === null
        ? { prompt: `What is the capital of France? ${this.#canary}`, maxTokens: 8, more: { temperature: 0 } }
        : {
            endpoint: ENDPOINTS[Math.floor(this.#random() * ENDPOINTS.length)] ?? '/v1/chat/completions',
            // Light agents read their script from the prompt and ignore other members.
            prompt: JSON.stringify({ ...script, note: this.#canary }),
            more: { temperature: 0 },
          }),
    });
    if (answer.kind !== 'verified') {
      end(answer.kind, answer.kind === 'refused' ? `${answer.status} ${answer.code}` : answer.code);
      return null;
    }
    if (script !== null && answer.text !== textOf(script)) throw new BadAnswer(`another text, of ${answer.text.length} characters`);
    return answer.receipt;
  }

  /** Mostly scripts of short answers; 15 % take 1.6 s or longer. */
  #script(): Script {
    const isLong = this.#random() < 0.15;
    return isLong
      ? { words: 40 + Math.floor(this.#random() * 120), everyMs: 40 }
      : { words: 1 + Math.floor(this.#random() * 30), everyMs: Math.floor(this.#random() * 20) };
  }
}
