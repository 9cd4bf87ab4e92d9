/** Interfaces of inference to a provider, implemented by `local-provider.ts` and by `cluster/placement/remote-provider.ts`. */
import type { Frame, JobCompleted, JobFailure, JobMessage, KeyId, ModelOffer, RequestFrames, TrustLevel } from '@inference/protocol';
import type { AnswerSample, PromptPrefix } from '@inference/scheduler';
import type { SealingKey } from './session/registration/admission.js';
import type { Registration } from './session/session-options.js';

/** A connected provider. Each connection has exactly one object, so `===` compares connections. */
export interface ProviderConnection {
  readonly registration: Registration;
  /** Accepted model offers. */
  readonly models: readonly ModelOffer[];
  /** Current sealing key for jobs; null after the key's expiry. */
  readonly key: SealingKey | null;
  /** Keys of sealed requests that the provider still opens. */
  readonly acceptedKeyIds: readonly KeyId[];
  /** Account with the provider's earnings, after a check of its token on this connection; null: none. */
  readonly ownerAccountId: string | null;
  readonly trustLevel: TrustLevel | null;
  /** Whether the newest challenge was answered in time. */
  readonly isAttested: boolean;
  /** Whether the manufacturer's certificate chain holds for the enclave key now. */
  readonly isDeviceChainVerified: boolean;
  /** Whether a newer connection of the same enclave key has replaced this connection. */
  readonly isReplaced: boolean;
  /** Slots in use, including reserved slots. */
  readonly usedSlots: number;
  /** Whether measured rates for a model are trusted: enough answers verified, or a certificate chain holds. */
  isProven(model: string): boolean;
  /** False for a rate far above the rates of all measured providers of the model, including this provider. */
  isPlausibleRate(model: string, tokensPerSecond: number): boolean;
  report(finding: JobFinding): void;
}

/** One reserved job slot of a provider. The caller must either start or release the slot, once. */
export interface ProviderSlot {
  readonly provider: ProviderConnection;
  /** Sends the job. `sink.lost` may be called before the return, when the connection breaks during the send. */
  start(message: JobMessage, frames: RequestFrames, sink: JobSink): JobHandle;
  /** Returns the slot unused. Harmless after {@link start}. */
  release(): void;
}

/** An observation about a provider from one job. */
export type JobFinding =
  /** The provider refused the job because all its slots are in use: no new job for a moment. */
  | { readonly kind: 'busy' }
  /** The provider takes no new jobs until its next connection. */
  | { readonly kind: 'draining' }
  /** `reason`: a code of this coordinator, stored with the fault. */
  | { readonly kind: 'fault'; readonly fault: 'failed' | 'timed_out' | 'unverified' | 'misbehaved'; readonly reason: string }
  /** Another attempt at the same job was faster. */
  | { readonly kind: 'slow' }
  /** The provider broke the job protocol: the connection is closed. `reason`: the exact problem, a code. */
  | { readonly kind: 'protocol_broken'; readonly reason: string }
  /** The signatures and the receipt of an answer verified. */
  | { readonly kind: 'answer_verified' }
  | ({ readonly kind: 'answer_settled' } & SettledAnswer);

/** A verified answer with its billed usage. */
export interface SettledAnswer {
  readonly model: string;
  readonly completionTokens: number;
  /** Prompt tokens that the signed receipt reports as cached. */
  readonly cachedTokens: number;
  /** Weights named in the receipt; undefined: none. */
  readonly weightsSha256: string | undefined;
  /** Prefixes of the prompt, the shortest first. */
  readonly prefixes: readonly PromptPrefix[];
  /** Null: the durations of this answer say nothing about throughput. */
  readonly sample: AnswerSample | null;
  /** Signed token counts of a complete text answer; null for partial answers, embeddings and images. */
  readonly tokenCounts: { readonly hiddenTokens: number; readonly completionTokens: number } | null;
}

/** Callbacks for the events of one job. `completed`, `failed` or `lost` is the last call. */
export interface JobSink {
  /** Called on progress of the send queue, until the last bytes of this job's request were sent. */
  sending(): void;
  accepted(): void;
  /** The provider works on the job, without output yet. */
  progressed(): void;
  frame(frame: Frame): void;
  completed(message: JobCompleted): void;
  failed(failure: JobFailure): void;
  /** The connection ended before the job. */
  lost(): void;
}

/** Controls one sent job. All calls are harmless after the end of the job. */
export interface JobHandle {
  /** False while the job's first message waits in the send queue. */
  isSent(): boolean;
  /** Grants credit for further response bytes. */
  grant(bytes: number): void;
  /** Asks the provider to stop and sign the output so far. The sink receives the end, unless cancelled. */
  recall(): void;
  /** Asks the provider to stop. The sink receives nothing more; the slot is free after the provider's confirmation. */
  cancel(): void;
}
