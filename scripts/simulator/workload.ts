/** `Workload`: random requests. Accounts differ in size, conversations resend their history, demand follows a daily cycle with bursts. */
import type { PromptPrefix } from '@inference/scheduler';
import type { EventQueue } from './event-queue.js';
import { MODELS } from './hardware.js';
import { Random, WeightedIndex, zipf } from './random.js';

export interface Job {
  readonly account: number;
  readonly model: string;
  readonly conversation: number;
  readonly turn: number;
  /** Tokens of the account's shared system prompt. */
  readonly systemTokens: number;
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** Hashes of the prompt's prefixes, for prefix affinity. */
  readonly promptPrefixes: readonly PromptPrefix[];
  /** Virtual time, in milliseconds. */
  readonly arrivedAt: number;
}

export interface WorkloadOptions {
  readonly seed: number;
  readonly accounts: number;
  /** Mean requests per second. */
  readonly rate: number;
  /** Length of the daily cycle, in virtual milliseconds. */
  readonly dayMs: number;
  readonly burstShare: number;
}

interface Account {
  readonly models: readonly string[];
  readonly systemTokens: number;
}

const BLOCK_TOKENS = 256;
const MAX_PROMPT = 30_000;
const MAX_ANSWER = 4096;
/** Mean requests of a burst, later turns of its conversations included. */
const BURST_REQUESTS = 120;
/** Time over which the conversations of a burst start. */
const BURST_MS = 4000;
/** Probability of a further turn after each answer; three turns on average. */
const CONTINUATION_PROBABILITY = 0.67;
const TURNS = 1 / (1 - CONTINUATION_PROBABILITY);
/** Median time between an answer and the next turn. */
const THINKING_MS = 20_000;

export class Workload {
  readonly #options: WorkloadOptions;
  readonly #events: EventQueue;
  readonly #random: Random;
  readonly #submit: (job: Job) => void;
  readonly #accounts: readonly Account[];
  readonly #weights: WeightedIndex;
  readonly #modelWeights = new WeightedIndex(zipf(MODELS.length, 1));
  #conversations = 0;

  constructor(options: WorkloadOptions, events: EventQueue, random: Random, submit: (job: Job) => void) {
    this.#options = options;
    this.#events = events;
    this.#random = random;
    this.#submit = submit;
    this.#weights = new WeightedIndex(zipf(options.accounts, 0.9));
    this.#accounts = Array.from({ length: options.accounts }, () => ({
      models: [this.#model(), this.#model()],
      systemTokens: Math.min(12_000, Math.round(random.happens(0.15) ? random.logNormal(6000, 0.5) : random.logNormal(150, 1))),
    }));
    this.#nextConversation();
    this.#nextBurst();
  }

  /** Call after a successful job: with `CONTINUATION_PROBABILITY`, the next turn arrives later. */
  answered(job: Job): void {
    const random = this.#randomOf(job);
    if (!random.happens(CONTINUATION_PROBABILITY)) return;
    this.#events.after(random.logNormal(THINKING_MS, 1), () => {
      const promptTokens = job.promptTokens + job.completionTokens + messageTokens(random);
      if (promptTokens < MAX_PROMPT) this.#submit(this.#job({ ...job, turn: job.turn + 1, promptTokens }));
    });
  }

  /** Random source of a turn, independent of arrival times: conversations are identical for every policy. */
  #randomOf({ conversation, turn }: Pick<Job, 'conversation' | 'turn'>): Random {
    return new Random(Math.imul(this.#options.seed + 1, 0x9e3779b1) ^ Math.imul(conversation * 64 + turn, 0x85ebca6b));
  }

  #nextConversation(): void {
    const { rate, burstShare, dayMs } = this.#options;
    const perMs = (rate * (1 - burstShare)) / TURNS / 1000;
    // Thinning (Lewis and Shedler): arrivals at the peak rate, each accepted with probability current rate / peak rate.
    this.#events.after(this.#random.exponential(1 / (perMs * 1.5)), () => {
      const level = 1 + 0.5 * Math.sin((2 * Math.PI * this.#events.now) / dayMs);
      if (this.#random.happens(level / 1.5)) this.#begin(this.#weights.draw(this.#random), null);
      this.#nextConversation();
    });
  }

  #nextBurst(): void {
    const { rate, burstShare } = this.#options;
    if (burstShare === 0) return;
    const everyMs = (1000 * BURST_REQUESTS) / (rate * burstShare);
    this.#events.after(this.#random.exponential(everyMs), () => {
      const account = this.#weights.draw(this.#random);
      const model = this.#random.pick((this.#accounts[account] as Account).models);
      const requests = Math.round(this.#random.exponential(BURST_REQUESTS / TURNS));
      for (let count = 0; count < requests; count++)
        this.#events.after(this.#random.between(0, BURST_MS), () => this.#begin(account, model));
      this.#nextBurst();
    });
  }

  /** Starts a conversation with the requested model, or else a random one of the account. */
  #begin(account: number, requestedModel: string | null): void {
    const { models, systemTokens } = this.#accounts[account] as Account;
    this.#submit(
      this.#job({
        account,
        model: requestedModel ?? this.#random.pick(models),
        conversation: this.#conversations++,
        turn: 0,
        systemTokens,
        promptTokens: systemTokens + messageTokens(this.#random),
      }),
    );
  }

  #job(begun: Omit<Job, 'completionTokens' | 'promptPrefixes' | 'arrivedAt'>): Job {
    return {
      ...begun,
      completionTokens: Math.max(1, Math.min(MAX_ANSWER, Math.round(this.#randomOf(begun).logNormal(200, 0.9)))),
      promptPrefixes: promptPrefixesOf(begun),
      arrivedAt: this.#events.now,
    };
  }

  #model(): string {
    return (MODELS[this.#modelWeights.draw(this.#random)] as (typeof MODELS)[number]).id;
  }
}

function messageTokens(random: Random): number {
  return Math.max(5, Math.round(random.happens(0.1) ? random.logNormal(3000, 0.7) : random.logNormal(60, 1)));
}

/** Prefix hashes as in the coordinator: equal for equal prefixes of the same account and model. */
function promptPrefixesOf({
  account,
  model,
  conversation,
  systemTokens,
  promptTokens,
}: Omit<Job, 'completionTokens' | 'promptPrefixes' | 'arrivedAt'>): PromptPrefix[] {
  const modelNumber = MODELS.findIndex(({ id }) => id === model);
  const promptPrefixes: PromptPrefix[] = [];
  for (let tokens = BLOCK_TOKENS; tokens <= promptTokens; tokens += BLOCK_TOKENS) {
    const block = tokens / BLOCK_TOKENS;
    const hash = tokens <= systemTokens ? ((account * 64 + modelNumber) * 256 + block) * 2 : (conversation * 256 + block) * 2 + 1;
    promptPrefixes.push({ hash, tokens });
  }
  return promptPrefixes;
}
