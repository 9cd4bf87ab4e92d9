/** A provider's session with a scripted engine, and the client and coordinator of its end-to-end jobs. */
import { randomUUID } from 'node:crypto';
import {
  decodeFrame,
  type E2eLogHead,
  type E2eRequestHead,
  type E2eRequestTerms,
  encodeFrame,
  type JobContext,
  type JobId,
  type KeyId,
  type ProviderId,
  type ProviderMessage,
  REQUEST_CHUNK_BYTES,
  type SealedE2eRequest,
  sealE2eRequest,
  toBase64,
} from '@inference/protocol';
import { generateSealingKeyPair, keyIdOf, nodeE2eCrypto, sha256Hex } from '@inference/protocol/crypto';
import { expect, vi } from 'vitest';
import { SoftwareEnclave } from '../../../../test/support/software-enclave.js';
import { Embedding } from '../../src/engine/embedding.js';
import { Generation } from '../../src/engine/generation.js';
import type { Ended, GenerationRequest } from '../../src/engine/messages.js';
import { ImageJob } from '../../src/imaging/image-job.js';
import { ReplaySet } from '../../src/jobs/channel/replay-set.js';
import type { ConstraintCompiler } from '../../src/jobs/constraint/constraint-compiler.js';
import type { ModelLease } from '../../src/jobs/model-lease.js';
import type { SealingKey } from '../../src/jobs/sealing-keys.js';
import { type JobEvent, SessionJobs } from '../../src/jobs/session-jobs.js';
import { type OpenedE2eAnswer, openE2eAnswer } from '../support/e2e-answer.js';

/** Time of all jobs, in milliseconds. */
export const NOW = 1_800_000_000_000;
/** Vitest waits for one second by default, which a busy machine exceeds. */
export const WAIT = { timeout: 60_000 };

export interface SealOptions {
  readonly terms?: Partial<E2eRequestTerms>;
  readonly head?: E2eRequestHead;
  /** Default: the provider's key. */
  readonly key?: SealingKey;
}

interface SubmitOptions {
  /** Changes to the coordinator's context. */
  readonly context?: Partial<JobContext>;
  readonly recipient?: number;
  readonly bytes?: Uint8Array;
  readonly enc?: Uint8Array;
  readonly credit?: number;
}

export function sealingKey(): SealingKey {
  const pair = generateSealingKeyPair();
  return { id: keyIdOf(pair.publicKey), pair, openedJobIds: new ReplaySet(), openedSealedRequests: new ReplaySet() };
}

export class E2eBench {
  readonly enclave = new SoftwareEnclave();
  readonly key = sealingKey();
  readonly oldKey = sealingKey();
  readonly sent: ProviderMessage[] = [];
  readonly frames: Uint8Array[] = [];
  readonly events: JobEvent[] = [];
  readonly generations: { readonly generation: Generation; readonly request: GenerationRequest }[] = [];
  embedding: ModelLease['embedding'] = null;
  image: ModelLease['image'] = null;
  signingFails = false;
  /** Checkpoint that the provider knows, by the client's tree head. */
  checkpointFor: (head: E2eLogHead) => string | null = () => null;
  readonly jobs: SessionJobs;

  /** Sealed requests → their bodies. */
  readonly #bodies = new WeakMap<SealedE2eRequest, Uint8Array>();

  constructor(constraints: Pick<ConstraintCompiler, 'compile'>, { closeTimeoutMs = 5000, now = (): number => NOW } = {}) {
    const keys = new Map<KeyId, SealingKey>([this.key, this.oldKey].map((key) => [key.id, key]));
    this.jobs = new SessionJobs({
      providerId: this.enclave.providerId,
      keys: { find: (id) => keys.get(id) ?? null },
      modelIds: () => new Set(['pico']),
      slots: 8,
      now,
      closeTimeoutMs,
      constraints,
      checkpointFor: (head) => this.checkpointFor(head),
      lease: async () => this.lease(),
      enclave: {
        signResponse: async () => {
          throw new Error('these jobs are sealed by the client');
        },
        signE2eResponse: async (responseSha256, draft) => {
          if (this.signingFails) throw new Error('the helper is gone');
          const receipt = { ...draft, provider_id: this.enclave.providerId, se_key_sha256: sha256Hex(this.enclave.publicKey) };
          return {
            signature: this.enclave.signResponse(responseSha256),
            sealedSignature: this.enclave.signResponse(draft.sealed_response_sha256),
            receipt: this.enclave.statement('e2e-receipt', receipt),
          };
        },
      },
      send: (message) => {
        if (message.type !== 'load') this.sent.push(message);
      },
      sendFrame: (bytes, sent) => {
        this.frames.push(bytes);
        queueMicrotask(sent);
      },
      onEnd: (event) => this.events.push(event),
    });
  }

  lease(): ModelLease {
    return {
      thinkTags: null,
      thinks: false,
      maxImageTokens: null,
      identity: { engine: 'llama.cpp b1 cpu', weightsSha256: 'a'.repeat(64), templateSha256: 'b'.repeat(64) },
      embedding: this.embedding,
      image: this.image,
      generate: (request) => {
        const generation = new Generation(this.generations.length, (command) => {
          if (command === 'cancel') generation.end({ job: generation.job, kind: 'cancelled' });
        });
        this.generations.push({ generation, request });
        return generation;
      },
      embed: () => {
        const embedding = new Embedding(0, () => {});
        embedding.push(Buffer.from(Float32Array.of(0.5, 0.5).buffer).toString('base64'), 3);
        embedding.end({ job: 0, kind: 'finished', reason: 'stop', completionTokens: 0 });
        return embedding;
      },
      generateImages: ({ count }) => {
        const job = new ImageJob(() => {});
        for (let index = 0; index < count; index++) job.push(Uint8Array.of(1, 2, 3, index));
        job.end({ kind: 'finished' });
        return job;
      },
      release: () => {},
    };
  }

  seal(request: object, { terms, head, key = this.key }: SealOptions = {}): SealedE2eRequest {
    const other = sealingKey();
    const body = Buffer.from(JSON.stringify(request));
    const sealed = sealE2eRequest(nodeE2eCrypto, {
      context: {
        endpoint: '/v1/chat/completions',
        model: 'pico',
        stream: (request as { stream?: boolean }).stream ?? false,
        max_tokens: 100,
        issued_at: NOW,
        expires_at: NOW + 60_000,
        ...terms,
      },
      recipients: [
        { provider_id: 'f'.repeat(32) as ProviderId, key_id: other.id, x25519: other.pair.publicKey },
        { provider_id: this.enclave.providerId, key_id: key.id, x25519: key.pair.publicKey },
      ],
      ...(head === undefined ? {} : { head }),
      body,
    });
    this.#bodies.set(sealed, body);
    return sealed;
  }

  /** Sends a sealed request as a coordinator does, to the second recipient. */
  submit(sealed: SealedE2eRequest, options: SubmitOptions = {}): JobContext {
    const { bytes = sealed.bytes, recipient = 1, credit = 1 << 20 } = options;
    const { endpoint, model, stream, max_tokens, recipients } = sealed.context;
    const context: JobContext = {
      v: 1,
      job_id: randomUUID() as JobId,
      provider_id: this.enclave.providerId,
      key_id: recipients[1]?.key_id ?? this.key.id,
      ...{ endpoint, model, stream, max_tokens },
      overrides: {},
      response_id: 'chatcmpl-of-the-coordinator',
      created: NOW / 1000,
      request_sha256: sha256Hex(bytes),
      issued_at: NOW,
      expires_at: NOW + 60_000,
      ...options.context,
    };
    const enc = options.enc ?? sealed.candidates[1]?.enc ?? new Uint8Array(32);
    this.jobs.handle({ type: 'job', context, enc: toBase64(enc), request_bytes: bytes.length, credit, e2e: { v: 1, recipient } });
    const count = Math.ceil(bytes.length / REQUEST_CHUNK_BYTES);
    for (let seq = 0; seq < count; seq++) {
      const payload = bytes.subarray(seq * REQUEST_CHUNK_BYTES, (seq + 1) * REQUEST_CHUNK_BYTES);
      this.jobs.frame(decodeFrame(encodeFrame({ type: 'request', final: seq === count - 1, seq, jobId: context.job_id, payload })));
    }
    return context;
  }

  /** Waits for the end of a job. */
  async ended(jobId: JobId): Promise<JobEvent> {
    await vi.waitFor(() => expect(this.events.map((event) => event.jobId)).toContain(jobId), WAIT);
    return this.events.find((event) => event.jobId === jobId) as JobEvent;
  }

  /** The engine's answer to the newest generation. */
  async generated(texts: readonly string[], ended?: Ended): Promise<void> {
    const generation = await this.begun(texts);
    generation.end(ended ?? { job: generation.job, kind: 'finished', reason: 'stop', completionTokens: texts.length });
  }

  /** First texts of the newest generation. */
  async begun(texts: readonly string[]): Promise<Generation> {
    await vi.waitFor(() => expect(this.generations.length).toBeGreaterThan(0), WAIT);
    const { generation } = this.generations.at(-1) as { generation: Generation };
    generation.start({ job: generation.job, promptTokens: 11, startsInsideThinking: false });
    for (const text of texts) generation.push({ text, tokens: 1 });
    return generation;
  }

  /** Runs a job to its end, with these texts if it reaches the engine. */
  async answered(sealed: SealedE2eRequest, texts?: readonly string[]): Promise<JobContext> {
    const context = this.submit(sealed);
    if (texts !== undefined) await this.generated(texts);
    await this.ended(context.job_id);
    return context;
  }

  payloads(jobId: JobId): Uint8Array[] {
    return this.frames
      .map((bytes) => decodeFrame(bytes))
      .filter((frame) => frame.jobId === jobId)
      .map(({ payload }) => payload);
  }

  /** Verifies a finished answer as coordinator and client do. */
  open(sealed: SealedE2eRequest, { job_id: jobId }: JobContext): OpenedE2eAnswer {
    const completed = this.sent.find((message) => message.type === 'job_completed' && message.job_id === jobId);
    if (completed?.type !== 'job_completed') throw new Error(`no job_completed: ${JSON.stringify(this.sent)}`);
    const body = this.#bodies.get(sealed) ?? new Uint8Array(0);
    return openE2eAnswer({
      ...{ sealed, recipient: 1, body, completed, publicKey: this.enclave.publicKey },
      bytes: Buffer.concat(this.payloads(jobId)),
    });
  }
}
