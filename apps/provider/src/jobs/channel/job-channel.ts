/**
 * Interfaces through which `Job` reads its sealed (HPKE-encrypted) request and writes its response.
 *
 * `CoordinatorChannel` implements them for plain mode, `E2eChannel` for end-to-end mode.
 */
import type { ApiError } from '@inference/formats';
import type { Frame, JobCompleted, JobFailure, Overrides } from '@inference/protocol';
import type { AnswerSummary } from '../answer/answer-text.js';
import type { ModelIdentity } from '../answer/computed-by.js';
import type { ParsedBody } from './parsed-body.js';

export interface JobTerms {
  readonly parsed: ParsedBody;
  /** Begins with the format's `idPrefix`. */
  readonly responseId: string;
  /** Bytes of the body, which limit the signed prompt tokens. */
  readonly requestBytes: number;
  /** Values that the coordinator sets in place of the client. */
  readonly overrides: Overrides;
  /** Requests with the same cache scope share cached prompt prefixes. Null shares nothing. */
  readonly cacheScope: string | null;
}

export interface FinishedAnswer {
  readonly summary: AnswerSummary;
  readonly identity: ModelIdentity;
  /** Start of the answer, in milliseconds since 1970. */
  readonly startedAt: number;
}

/** Response of a job: plaintext in, sealed frames out. */
export interface JobResponse {
  /** Plaintext bytes written, sent or not. */
  readonly written: number;
  /** Permits more bytes of the response to be sent. */
  grant(bytes: number): void;
  /** Resolves when the reader has room for more. Rejects with the signal's reason if the job ends meanwhile. */
  write(text: string): Promise<void>;
  /** Sends an image answer: the images that the body links, if any, and the body. */
  writeImages(images: readonly Uint8Array[], body: string): Promise<void>;
  /** Sends the rest and has the answer signed. Throws {@link JobError} `signing_failed`, or the signal's reason. */
  finish(answer: FinishedAnswer): Promise<JobCompleted>;
  /** Overwrites unsent plaintext. */
  erase(): void;
}

export interface JobChannel {
  /** Adds a frame of the request. Returns whether the request is complete and opened. Throws {@link JobError}. */
  accept(frame: Frame): boolean;
  /** Parses the request and compares it with the job's context. Throws {@link JobError}, or RequestError if {@link refuse} is not null. */
  terms(): JobTerms;
  /** Call once, after `terms`, even if that threw. The response may send `credit` bytes until `grant` adds more. */
  openResponse(credit: number, signal: AbortSignal): JobResponse;
  /** Answers with a signed error that only the client can read. Null in plain mode, where the coordinator renders errors. */
  readonly refuse: ((error: ApiError, startedAt: number) => Promise<JobCompleted>) | null;
  /** The part of a failure that the coordinator may know. */
  reportedFailure(failure: JobFailure): JobFailure;
  /** Overwrites the request's plaintext. */
  erase(): void;
}
