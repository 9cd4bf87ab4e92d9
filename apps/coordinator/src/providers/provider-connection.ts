/**
 * Interfaces of a provider for the inference layer.
 *
 * Implemented in `session/local-provider.ts` and, for providers of other coordinators, in `cluster/placement/remote-provider.ts`.
 */
import type { Frame, JobCompleted, JobFailure, JobMessage, KeyId, ModelOffer, RequestFrames, TrustLevel } from '@inference/protocol';
import type { AnswerSample, PromptPrefix } from '@inference/scheduler';
import type { SealingKey } from './session/registration/admission.js';
import type { Registration } from './session/session-options.js';

/** A connected provider. There is exactly one object per connection, so `===` compares connections. */
export interface ProviderConnection {
  readonly registration: Registration;
  /** Accepted model offers. */
  readonly models: readonly ModelOffer[];
  /** Current sealing key for jobs; null after it has expired. */
  readonly key: SealingKey | null;
  /** Sealing keys that the provider still accepts for sealed requests. */
  readonly acceptedKeyIds: readonly KeyId[];
  /** Account that receives the provider's earnings, verified by a token on this connection; null: none. */
  readonly ownerAccountId: string | null;
  readonly trustLevel: TrustLevel | null;
  /** Whether the newest challenge that is not open any more was answered correctly and in time. */
  readonly isAttested: boolean;
  /** Whether the device's attestation certificate chain for the enclave key is valid now. */
  readonly isDeviceChainVerified: boolean;
  /** Whether the same enclave key has opened a newer connection. */
  readonly isReplaced: boolean;
  /** Slots in use, including reserved ones. */
  readonly usedSlots: number;
  /** Whether the provider has trust level `hardware`, or has given enough verified answers with this model. */
  isProven(model: string): boolean;
  /** False if the rate is far above the rates of all measured providers of the model, including this one. */
  isPlausibleRate(model: string, tokensPerSecond: number): boolean;
  report(finding: JobFinding): void;
}

/** A reserved slot of a provider. The caller must call either `start` or `release`, once. */
export interface ProviderSlot {
  readonly provider: ProviderConnection;
  /** Sends the job. If the connection breaks during the call, `sink.lost` may be called before the function returns. */
  start(message: JobMessage, frames: RequestFrames, sink: JobSink): JobHandle;
  /** Returns the slot unused. No effect after {@link start}. */
  release(): void;
}

/** An observation about a provider during one job. */
export type JobFinding =
  /** The provider refused the job because all its slots are in use. Starts a short backoff. */
  | { readonly kind: 'busy' }
  /** The provider takes no new jobs on this connection. */
  | { readonly kind: 'draining' }
  /** `reason`: a code defined by this coordinator, stored with the fault. */
  | { readonly kind: 'fault'; readonly fault: 'failed' | 'timed_out' | 'unverified' | 'misbehaved'; readonly reason: string }
  /** Another attempt of the same job was faster. */
  | { readonly kind: 'slow' }
  /** The provider violated the job protocol, so its connection is closed. `reason`: a code of the violation. */
  | { readonly kind: 'protocol_broken'; readonly reason: string }
  /** The signatures and the receipt of an answer are valid. */
  | { readonly kind: 'answer_verified' }
  | ({ readonly kind: 'answer_settled' } & SettledAnswer);

/** A verified answer with its billed usage. */
export interface SettledAnswer {
  readonly model: string;
  readonly completionTokens: number;
  /** Prompt tokens that the signed receipt reports as cached. */
  readonly cachedTokens: number;
  /** Hash of the model's weights in the receipt; undefined: the receipt has none. */
  readonly weightsSha256: string | undefined;
  /** Prefix hashes of the prompt, shortest first. */
  readonly prefixes: readonly PromptPrefix[];
  /** Null: this answer does not measure throughput. */
  readonly sample: AnswerSample | null;
  /** Signed token counts of a complete text answer. Null for partial answers, embeddings and images. */
  readonly tokenCounts: { readonly hiddenTokens: number; readonly completionTokens: number } | null;
}

/** Callbacks for one job. The last call is `completed`, `failed` or `lost`. None follows {@link JobHandle.cancel}. */
export interface JobSink {
  /** The connection's send queue made progress. Called until the whole request of this job is sent. */
  sending(): void;
  accepted(): void;
  /** The provider works on the job but has no output yet. */
  progressed(): void;
  frame(frame: Frame): void;
  completed(message: JobCompleted): void;
  failed(failure: JobFailure): void;
  /** The connection closed before the job ended. */
  lost(): void;
}

/** Controls a job that was sent. No call has an effect after the end of the job. */
export interface JobHandle {
  /** False while the first message of the job is still in the send queue. */
  isSent(): boolean;
  /** Allows the provider to send further response bytes. */
  grant(bytes: number): void;
  /** Asks the provider to stop and to sign its output so far. The sink receives the result. */
  recall(): void;
  /** Asks the provider to stop. The sink receives no further calls. The slot is freed by a confirmation, or after a timeout. */
  cancel(): void;
}
