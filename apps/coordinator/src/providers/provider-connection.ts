/** Interfaces of inference to a provider, implemented by `local-provider.ts` and by `cluster/placement/remote-provider.ts`. */
import type { Frame, JobCompleted, JobFailure, JobMessage, KeyId, ModelOffer, RequestFrames, TrustLevel } from '@inference/protocol';
import type { AnswerSample, PromptPrefix } from '@inference/scheduler';
import type { SealingKey } from './session/registration/admission.js';
import type { Registration } from './session/session-options.js';

/** A connected provider. Each connection has one object, so references to one connection are equal. */
export interface ProviderConnection {
  readonly registration: Registration;
  /** Accepted model offers. */
  readonly models: readonly ModelOffer[];
  /** Key that jobs are sealed to now; null after the key's expiry. */
  readonly key: SealingKey | null;
  /** Keys to which clients may have sealed requests that the provider still opens. */
  readonly acceptedKeyIds: readonly KeyId[];
  /** Account that the provider earns for, after its token was checked on this connection; null: none. */
  readonly ownerAccountId: string | null;
  readonly trustLevel: TrustLevel | null;
  /** Whether the newest challenge was answered in time. */
  readonly isAttested: boolean;
  /** Whether the manufacturer's certificate chain holds for the enclave key now. */
  readonly isDeviceChainVerified: boolean;
  /** Whether a newer connection of the same enclave key has replaced this one. */
  readonly isReplaced: boolean;
  /** Slots in use, reserved ones included. */
  readonly usedSlots: number;
  /** Whether the rates for a model count as measured: enough of its answers verified, or a certificate chain holds. */
  isProven(model: string): boolean;
  /** False for a rate far beyond every measured provider of the model, this one included. */
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
  /** The provider takes no new jobs until it reconnects. */
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

/** Events of one job. No call follows `completed`, `failed` or `lost`. Callbacks, because they run once per frame. */
export interface JobSink {
  /** Called on sent bytes while this job's request waits in the send queue, and on its last bytes. */
  sending(): void;
  accepted(): void;
  /** The provider works on the job and has no output yet. */
  progressed(): void;
  frame(frame: Frame): void;
  completed(message: JobCompleted): void;
  failed(failure: JobFailure): void;
  /** The connection ended first. */
  lost(): void;
}

/** Controls one sent job. All calls are harmless after the end of the job. */
export interface JobHandle {
  /** False while the job's first message waits in the send queue. */
  isSent(): boolean;
  /** Grants credit for this many more response bytes. */
  grant(bytes: number): void;
  /** Asks the provider to stop and sign the output so far. The sink receives the end, unless cancelled. */
  recall(): void;
  /** Asks the provider to stop. The sink receives nothing more; the slot is free after the provider's confirmation. */
  cancel(): void;
}
