/** Receives the sealed request of an end-to-end job: joins its frames, opens it only once, and compares its context with the job. */
import {
  CLOCK_TOLERANCE_MS,
  type E2eContext,
  E2eError,
  equalBytes,
  type Frame,
  fromBase64,
  type JobMessage,
  MAX_KEY_LIFETIME_MS,
  type OpenedE2eRequest,
  openE2eRequest,
  toHex,
} from '@inference/protocol';
import { e2eKeyPair, nodeE2eCrypto } from '@inference/protocol/crypto';
import { JobError } from '../job-error.js';
import type { SealingKey } from '../sealing-keys.js';

export type E2eJobMessage = JobMessage & Required<Pick<JobMessage, 'e2e'>>;

/** Joins the payloads of request frames, which are the client's ciphertext, to the announced size. */
export class SealedRequestCollector {
  #bytes: Uint8Array | null = null;
  #received = 0;
  #seq = 0;

  constructor(private readonly message: JobMessage) {}

  /** Adds a frame. Returns all bytes after the final frame, else null. Throws {@link JobError} `unsealing_failed`. */
  accept({ type, jobId, seq, final, payload }: Frame): Uint8Array | null {
    const { context, request_bytes: announced } = this.message;
    const total = this.#received + payload.length;
    const isDue = type === 'request' && jobId === context.job_id && seq === this.#seq;
    if (!isDue || total > announced || (final && total !== announced)) throw new JobError('unsealing_failed');
    this.#seq += 1;
    this.#bytes ??= new Uint8Array(announced);
    this.#bytes.set(payload, this.#received);
    this.#received = total;
    return final ? this.#bytes : null;
  }
}

/**
 * Opens a sealed request, and rejects a second opening with the same key. Throws {@link JobError}: `bad_context`, `expired`, `replayed`,
 * `busy` (full replay set), `unsealing_failed`.
 */
export function openOnce(message: E2eJobMessage, bytes: Uint8Array, key: SealingKey, now: number): OpenedE2eRequest {
  const opened = openOrThrowJobError(() => openE2eRequest(nodeE2eCrypto, bytes, message.e2e.recipient, e2eKeyPair(key.pair)));
  const { context, enc, sealedRequestSha256 } = opened;
  if (sealedRequestSha256 !== message.context.request_sha256 || !equalBytes(enc, encOf(message))) throw new JobError('bad_context');
  if (!matchesJob(context, message)) throw new JobError('bad_context');
  if (now > context.expires_at + CLOCK_TOLERANCE_MS || now < context.issued_at - CLOCK_TOLERANCE_MS) throw new JobError('expired');
  // A longer lifetime would outlast the sealing key and fill the replay set.
  if (context.expires_at - context.issued_at > MAX_KEY_LIFETIME_MS) throw new JobError('expired');
  const added = key.openedSealedRequests.add([`enc ${toHex(enc)}`, `nonce ${context.nonce}`], {
    until: context.expires_at + CLOCK_TOLERANCE_MS,
    now,
  });
  if (added === 'full') throw new JobError('busy');
  if (added !== 'added') throw new JobError(added);
  return opened;
}

function matchesJob(context: E2eContext, { context: job, e2e }: E2eJobMessage): boolean {
  const recipient = context.recipients[e2e.recipient];
  return (
    recipient?.provider_id === job.provider_id &&
    recipient.key_id === job.key_id &&
    context.endpoint === job.endpoint &&
    context.model === job.model &&
    context.stream === job.stream &&
    context.max_tokens === job.max_tokens
  );
}

function encOf({ enc }: JobMessage): Uint8Array {
  try {
    return fromBase64(enc);
  } catch {
    throw new JobError('bad_context');
  }
}

function openOrThrowJobError(open: () => OpenedE2eRequest): OpenedE2eRequest {
  try {
    return open();
  } catch (error) {
    if (!(error instanceof E2eError)) throw error;
    throw new JobError(error.code === 'wrong_recipient' ? 'bad_context' : 'unsealing_failed');
  }
}
