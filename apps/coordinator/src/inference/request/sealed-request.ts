/** `readSealedRequest` parses the readable part of a sealed (end-to-end encrypted) request, and validates structure, times and sizes. */
import { apiError, RequestError } from '@inference/formats';
import {
  CLOCK_TOLERANCE_MS,
  type E2eContext,
  E2eError,
  type E2eRequestHeader,
  type JobId,
  type KeyId,
  type ProviderId,
  parseE2eRequest,
} from '@inference/protocol';
import { sha256Hex } from '@inference/protocol/crypto';
import type { SealedNonce } from '../../database/sealed-nonce-repository.js';

/** Maximum validity of a sealed request, in milliseconds. Bounds how long coordinators and providers must remember its nonce. */
export const MAX_SEALED_LIFETIME_MS = 3_600_000;

/** Provider to which the client sealed the request. Any candidate may answer. */
export interface SealedCandidate {
  /** Position in the context's `recipients`. */
  readonly index: number;
  readonly keyId: KeyId;
  /** HPKE encapsulated key (RFC 9180), 32 bytes. With it, the provider unwraps the key of the request. */
  readonly enc: Uint8Array;
}

export interface SealedRequest {
  /** Terms of the request in clear: endpoint, model, limits, times and recipients. */
  readonly context: E2eContext;
  /** SHA-256 of the context's canonical JSON, in lowercase hexadecimal. */
  readonly contextSha256: string;
  readonly candidates: ReadonlyMap<ProviderId, SealedCandidate>;
  /** Pixels for which each generated image is billed. Null if the job generates none. */
  readonly imagePixels: number | null;
}

/** Parses and validates a sealed request at `now`, in milliseconds since 1970. Throws RequestError that names the field. */
export function readSealedRequest(body: Uint8Array, now: number): Omit<SealedRequest, 'imagePixels'> {
  const { context, contextBytes, wrappedKeys } = parseOrRefuse(body);
  requireTimes(context, now);
  const candidates = new Map<ProviderId, SealedCandidate>();
  for (const [index, { provider_id, key_id: keyId }] of context.recipients.entries()) {
    const wrapped = wrappedKeys[index];
    if (wrapped !== undefined) candidates.set(provider_id, { index, keyId, enc: wrapped.enc });
  }
  return { context, contextSha256: sha256Hex(contextBytes), candidates };
}

/** Replay nonce for the ledger, which accepts each nonce of an account once until the request has expired at every coordinator. */
export function sealedNonce(
  { context: { nonce, issued_at, expires_at } }: Pick<SealedRequest, 'context'>,
  { accountId, jobId }: { readonly accountId: string; readonly jobId: JobId },
): SealedNonce {
  const digest = sha256Hex(Buffer.from(`${accountId} ${nonce}`));
  return { digest, jobId, lifetimeMs: expires_at - issued_at + 2 * CLOCK_TOLERANCE_MS };
}

function parseOrRefuse(body: Uint8Array): E2eRequestHeader {
  try {
    return parseE2eRequest(body);
  } catch (error) {
    if (!(error instanceof E2eError)) throw error;
    throw new RequestError('invalid_request', fieldOf(error), `The sealed request is not valid (${error.code}): ${error.message}.`);
  }
}

/** Context member at fault, such as `context.max_tokens`, if any. */
function fieldOf({ code, member }: E2eError): string | null {
  if (code === 'size_mismatch') return 'context.body_bytes';
  return member === null ? null : `context.${member.replaceAll('/', '.')}`;
}

function requireTimes({ issued_at, expires_at }: E2eContext, now: number): void {
  if (issued_at > now + CLOCK_TOLERANCE_MS) throw badTime('issued_at', 'lies in the future. Check the clock.');
  if (expires_at < now - CLOCK_TOLERANCE_MS) throw badTime('expires_at', 'has passed. Seal the request again.');
  if (expires_at - issued_at > MAX_SEALED_LIFETIME_MS) throw badTime('expires_at', 'is more than one hour after issued_at.');
}

function badTime(member: string, fault: string): RequestError {
  const param = `context.${member}`;
  const { code, message } = apiError('invalid_request', { message: `${param} ${fault}` });
  return new RequestError(code, param, message);
}
