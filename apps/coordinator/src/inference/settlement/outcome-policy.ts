/**
 * What an attempt's outcome means: whether another provider may try, what this one gets for it, and what the client is told
 * when nobody does better. One pure table, so that the runner only follows it.
 */
import { type ApiError, apiError } from '@inference/formats';
import { JOB_FAILURES, type JobFailure } from '@inference/protocol';
import type { AttemptOutcome } from '../attempt/attempt.js';

/** What the provider gets for it. Connections that are lost are counted by the fleet, once for all their jobs. */
export type Consequence = 'none' | 'hold_off' | 'drain' | 'failed' | 'timed_out' | 'misbehaved';

export interface FailureVerdict {
  readonly retry: boolean;
  readonly consequence: Consequence;
  readonly error: ApiError;
  /** For the log: a code, never text that a provider wrote. */
  readonly reason: string;
}

export type FailedAttempt = Exclude<AttemptOutcome, { kind: 'completed' | 'stopped' | 'overtaken' }>;

export function isFailure(outcome: AttemptOutcome): outcome is FailedAttempt {
  return outcome.kind !== 'completed' && outcome.kind !== 'stopped' && outcome.kind !== 'overtaken';
}

export function judgeFailure(outcome: FailedAttempt): FailureVerdict {
  switch (outcome.kind) {
    case 'failed':
      return judgeReported(outcome.failure);
    case 'lost':
      return { retry: true, consequence: 'none', error: apiError('provider_failed'), reason: 'connection_lost' };
    case 'timeout':
      return { retry: true, consequence: 'timed_out', error: apiError('provider_timeout'), reason: `timeout_${outcome.phase}` };
    case 'unsent':
      return { retry: true, consequence: 'none', error: apiError('no_provider'), reason: 'unsent' };
    case 'violated':
      return { retry: true, consequence: 'misbehaved', error: apiError('provider_failed'), reason: outcome.violation };
    case 'unsealable':
      return { retry: true, consequence: 'misbehaved', error: apiError('provider_failed'), reason: 'unusable_key' };
  }
}

/** Whether the provider says that the request itself is at fault. */
export function isClientsFault(outcome: AttemptOutcome): outcome is AttemptOutcome & { kind: 'failed' } {
  return outcome.kind === 'failed' && JOB_FAILURES[outcome.failure.code].blame === 'client';
}

function judgeReported(failure: JobFailure): FailureVerdict {
  const reason = failure.code;
  switch (JOB_FAILURES[failure.code].blame) {
    case 'client':
      return { retry: false, consequence: 'none', error: clientError(failure), reason };
    case 'capacity':
      return { retry: true, consequence: failure.code === 'draining' ? 'drain' : 'hold_off', error: apiError('no_provider'), reason };
    case 'provider':
    case 'nobody':
      return { retry: true, consequence: 'failed', error: apiError('provider_failed'), reason };
  }
}

function clientError(failure: JobFailure): ApiError {
  const param = failure.param === undefined ? {} : { param: failure.param };
  if (failure.code === 'unsupported') return apiError('unsupported_parameter', atField(failure, unsupportedFault(failure)));
  if (failure.code !== 'context_length_exceeded') return apiError('invalid_request', atField(failure, 'is not valid.'));
  const { limit, actual } = failure;
  if (limit === undefined || actual === undefined) return apiError('context_length_exceeded', param);
  return apiError('context_length_exceeded', { tooLong: { limit, actual }, ...param });
}

/** Fields that hold a JSON Schema, or parts of one. */
const SCHEMA_FIELD = /schema|^tools|^guided_|^structured_outputs|^format|^response_format\.value/;

/** Answers are held to a schema by a grammar, whose size grows with what the schema counts. */
function unsupportedFault({ param = '', limit }: JobFailure): string {
  if (limit !== undefined) {
    return `is limited to ${limit} here: answers are held to the schema while they are written, which takes more memory with each more to count. Lower it, or leave it out and check it yourself.`;
  }
  if (!SCHEMA_FIELD.test(param)) return 'is not offered for this model.';
  return 'cannot be enforced while the answer is written: the keyword is not supported, or the schema is too complex. Simplify it, or set strict to false where the format has it.';
}

/** The field at fault stands in the message as well, because the Messages format has no other place for it. */
function atField({ param }: JobFailure, fault: string): { param?: string; message?: string } {
  return param === undefined ? {} : { param, message: `${param} ${fault}` };
}
