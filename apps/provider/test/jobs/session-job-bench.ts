/** `Bench`: jobs of a session with real sealing and a scripted engine. */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { decodeFrame, type JobContext, type JobId, type KeyId, type ProviderId, type ProviderMessage, toBase64 } from '@inference/protocol';
import { encapsulate, generateSealingKeyPair, keyIdOf, type ResponseOpener, sealRequest, sha256Hex } from '@inference/protocol/crypto';
import { expect } from 'vitest';
import { Embedding } from '../../src/engine/embedding.js';
import { Generation, type StreamCommand } from '../../src/engine/generation.js';
import type { EmbeddingRequest, Ended, GenerationRequest } from '../../src/engine/messages.js';
import { ImageJob } from '../../src/imaging/image-job.js';
import type { ImageRequest } from '../../src/imaging/messages.js';
import { ReplaySet } from '../../src/jobs/channel/replay-set.js';
import type { ConstraintCompiler } from '../../src/jobs/constraint/constraint-compiler.js';
import type { ModelLease } from '../../src/jobs/model-lease.js';
import type { SealingKey } from '../../src/jobs/sealing-keys.js';
import { SessionJobs } from '../../src/jobs/session-jobs.js';
import type { EmbeddingFacts } from '../../src/models/embedding-facts.js';

export const providerId = '0123456789abcdef0123456789abcdef' as ProviderId;
export const now = 1_800_000_000_000;

export function sealingKey(): SealingKey {
  const pair = generateSealingKeyPair();
  return { id: keyIdOf(pair.publicKey), pair, openedJobIds: new ReplaySet(), openedSealedRequests: new ReplaySet() };
}

export interface ScriptedStream {
  readonly generation: Generation;
  readonly request: GenerationRequest;
  readonly commands: StreamCommand[];
}

export class Bench {
  readonly key = sealingKey();
  readonly oldKey = sealingKey();
  readonly sent: ProviderMessage[] = [];
  readonly frames: Uint8Array[] = [];
  readonly streams: ScriptedStream[] = [];
  readonly embeddings: { readonly embedding: Embedding; readonly request: EmbeddingRequest }[] = [];
  /** Null: the model writes text. */
  embedding: EmbeddingFacts | null = null;
  readonly drawings: { readonly drawing: ImageJob; readonly request: ImageRequest; readonly commands: string[] }[] = [];
  /** Null: the model takes no images. */
  maxImageTokens: number | null = null;
  /** Null: the model makes no images. */
  image: ModelLease['image'] = null;
  /** Resolves when the model is in memory. */
  loaded: Promise<unknown> = Promise.resolve();
  leased = 0;
  released = 0;
  signingFails = false;
  away: 'away' | 'busy' | null = null;
  /** Frames whose bytes have not been written. */
  unsent: (() => void)[] | null = null;
  /** Constraints being compiled or checked. */
  readonly #thoughts = new Set<Promise<unknown>>();
  readonly jobs: SessionJobs;

  constructor(constraints: ConstraintCompiler, slots = 2, { pingAfterMs = 10_000, closeTimeoutMs = 5000, progressEveryMs = 15_000 } = {}) {
    const keys = new Map<KeyId, SealingKey>([this.key, this.oldKey].map((key) => [key.id, key]));
    this.jobs = new SessionJobs({
      providerId,
      keys: { find: (id) => keys.get(id) ?? null },
      modelIds: () => new Set(['pico']),
      slots,
      away: () => this.away,
      now: () => now,
      pingAfterMs,
      closeTimeoutMs,
      progressEveryMs,
      lease: async (_model, signal) => {
        this.leased++;
        await Promise.race([this.loaded, once(signal, 'abort')]);
        signal.throwIfAborted();
        return this.lease();
      },
      constraints: {
        compile: async (...about) => {
          const constraint = await this.#thought(constraints.compile(...about));
          return constraint === null ? null : { ...constraint, fits: (output) => this.#thought(constraint.fits(output)) };
        },
      },
      enclave: {
        signResponse: async (receipt) => {
          if (this.signingFails) throw new Error('the helper is gone');
          return { signature: 'AA==', receipt: { payload: toBase64(Buffer.from(JSON.stringify(receipt))), signature: 'AA==' } };
        },
        signE2eResponse: async () => {
          throw new Error('these jobs are sealed by the coordinator');
        },
      },
      send: (message) => {
        // Load is reported after a delay, which on a busy machine may fall into any step.
        if (message.type !== 'load') this.sent.push(message);
      },
      sendFrame: (bytes, sent) => {
        this.frames.push(bytes);
        if (this.unsent === null) queueMicrotask(sent);
        else this.unsent.push(sent);
      },
      onEnd: () => {},
    });
  }

  lease(): ModelLease {
    return {
      thinkTags: { open: '<think>', close: '</think>' },
      thinks: true,
      maxImageTokens: this.maxImageTokens,
      identity: { engine: 'llama.cpp b1 cpu', weightsSha256: 'a'.repeat(64), templateSha256: 'b'.repeat(64) },
      embedding: this.embedding,
      image: this.image,
      systemFingerprint: 'fp_0123456789ab',
      generate: (request) => {
        const commands: StreamCommand[] = [];
        const generation = new Generation(this.streams.length, (command) => {
          commands.push(command);
          if (command === 'cancel') generation.end({ job: generation.job, kind: 'cancelled' });
        });
        this.streams.push({ generation, request, commands });
        return generation;
      },
      embed: (request) => {
        const embedding = new Embedding(this.embeddings.length, () => embedding.end({ job: embedding.job, kind: 'cancelled' }));
        this.embeddings.push({ embedding, request });
        return embedding;
      },
      generateImages: (request) => {
        const commands: string[] = [];
        const drawing = new ImageJob((command) => {
          commands.push(command);
          drawing.end({ kind: 'cancelled' });
        });
        this.drawings.push({ drawing, request, commands });
        return drawing;
      },
      release: () => this.released++,
    };
  }

  context(body: Uint8Array, changes: Partial<JobContext> = {}): JobContext {
    return {
      v: 1,
      job_id: randomUUID() as JobId,
      provider_id: providerId,
      key_id: this.key.id,
      endpoint: '/v1/chat/completions',
      model: 'pico',
      stream: true,
      max_tokens: 8192,
      overrides: { max_tokens: 8192 },
      response_id: 'chatcmpl-1',
      created: 1_800_000_000,
      request_sha256: sha256Hex(body),
      issued_at: now,
      expires_at: now + 60_000,
      ...changes,
    };
  }

  submit(
    body: Uint8Array,
    context: JobContext,
    { credit = 1 << 20, key = this.key, sealedAs = context, frames = (all: Uint8Array[]) => all } = {},
  ) {
    const sealed = sealRequest(sealedAs, encapsulate(key.pair.publicKey), body);
    this.jobs.handle({ type: 'job', context, enc: toBase64(sealed.enc), request_bytes: body.length, credit });
    for (const frame of frames([...sealed.frames])) this.jobs.frame(decodeFrame(frame));
    return sealed;
  }

  /** Runs everything ready, and tasks of other threads. */
  async settle(): Promise<void> {
    do {
      await Promise.allSettled(this.#thoughts);
      for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve));
    } while (this.#thoughts.size > 0);
  }

  async #thought<T>(thought: Promise<T>): Promise<T> {
    this.#thoughts.add(thought);
    try {
      return await thought;
    } finally {
      this.#thoughts.delete(thought);
    }
  }

  /** Waits until the condition holds, however slow the machine. */
  async until(holds: () => boolean): Promise<void> {
    while (!holds()) await new Promise((resolve) => setTimeout(resolve, 2));
  }

  /** Submits a job, and runs everything ready. */
  async start(body: Uint8Array, changes: Partial<JobContext> = {}, options: Parameters<Bench['submit']>[2] = {}) {
    const context = this.context(body, changes);
    const { responseOpener: responses } = this.submit(body, context, options);
    await this.settle();
    return { context, responses };
  }

  async cancel({ job_id }: JobContext): Promise<void> {
    this.jobs.handle({ type: 'cancel', job_id });
    await this.settle();
  }

  async failureOf(...job: Parameters<Bench['start']>): Promise<unknown> {
    const { context } = await this.start(...job);
    const failed = this.sent.filter((message) => message.type === 'job_failed' && message.job_id === context.job_id);
    expect(failed.length).toBeLessThanOrEqual(1);
    const [message] = failed;
    return message?.type === 'job_failed' ? message.failure : null;
  }

  /** The newest stream. */
  get stream(): ScriptedStream {
    const stream = this.streams.at(-1);
    if (stream === undefined) throw new Error('no job reached the engine');
    return stream;
  }

  /** First texts of the newest stream, a token each. */
  async write(...texts: readonly string[]): Promise<void> {
    const { generation } = this.stream;
    generation.start({ job: generation.job, promptTokens: 11, startsInsideThinking: false });
    for (const text of texts) generation.push({ text, tokens: 1 });
    await this.settle();
  }

  /** The whole newest stream. */
  async finish(texts: readonly string[], ended?: Ended): Promise<void> {
    const { generation } = this.stream;
    generation.start({ job: generation.job, promptTokens: 11, startsInsideThinking: false });
    for (const text of texts) generation.push({ text, tokens: 1 });
    generation.end(ended ?? { job: generation.job, kind: 'finished', reason: 'stop', completionTokens: texts.length });
    await this.settle();
  }

  /** Content of all frames. */
  text(responses: ResponseOpener): string {
    return Buffer.concat(this.frames.map((frame) => responses.open(decodeFrame(frame)))).toString();
  }

  /** Receipt of the completed job, null without one. */
  get receipt() {
    const completed = this.sent.find(({ type }) => type === 'job_completed');
    return completed?.type === 'job_completed' ? JSON.parse(Buffer.from(completed.receipt.payload, 'base64').toString()) : null;
  }
}

export const chat = (changes: Record<string, unknown> = {}) =>
  Buffer.from(JSON.stringify({ model: 'pico', stream: true, messages: [{ role: 'user', content: 'Hi' }], ...changes }));

export const weather = {
  type: 'function',
  function: { name: 'weather', parameters: { type: 'object', properties: { city: { type: 'string' } } } },
};

export const callOf = (city: string) => [
  '<tool_call>\n',
  '{"name": "weather", ',
  '"arguments": {"city": ',
  `"${city}"}}`,
  '\n</tool_call>',
];

export const messagesContext = { endpoint: '/v1/messages', max_tokens: 9, overrides: {}, response_id: 'msg_1' } as const;

/** A client's answer for a scripted output. */
export async function answerTo(
  constraints: ConstraintCompiler,
  request: Record<string, unknown>,
  texts: readonly string[],
  context: Partial<JobContext> = {},
) {
  const bench = new Bench(constraints);
  const { responses } = await bench.start(chat({ stream: false, ...request }), { stream: false, ...context });
  await bench.finish(texts);
  return { body: JSON.parse(bench.text(responses)), receipt: bench.receipt, stream: bench.stream };
}
