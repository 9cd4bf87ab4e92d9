/** Parsers of `X-Inference-…` request headers. Each returns null for an absent header, and throws RequestError for a malformed one. */
import { apiError, RequestError, type SignatureForm } from '@inference/formats';
import { fromBase64Url, PROVIDER_ID_PATTERN, type ProviderId, type TrustLevel } from '@inference/protocol';

const PROVIDER_ID = new RegExp(PROVIDER_ID_PATTERN);

export function readNonce(header: string | undefined): string | null {
  if (header === undefined) return null;
  if (isNonce(header)) return header;
  const { code, message } = apiError('invalid_request', { message: 'X-Inference-Nonce must be 32 bytes in base64url without padding.' });
  throw new RequestError(code, 'X-Inference-Nonce', message);
}

function isNonce(text: string): boolean {
  try {
    return fromBase64Url(text).length === 32;
  } catch {
    // Not base64url.
    return false;
  }
}

export function readTrustFloor(header: string | undefined): TrustLevel | null {
  if (header === undefined) return null;
  const level = header.trim().toLowerCase();
  if (level === 'hardware' || level === 'self_signed') return level;
  throw new RequestError('invalid_request', 'X-Inference-Trust', 'X-Inference-Trust must be hardware or self_signed.');
}

export function readSignatureForm(header: string | undefined): SignatureForm | null {
  if (header === undefined) return null;
  const form = header.trim().toLowerCase();
  if (form === 'event' || form === 'comment') return form;
  throw new RequestError('invalid_request', 'X-Inference-Signature', 'X-Inference-Signature must be event or comment.');
}

export function readProviderId(header: string | undefined): ProviderId | null {
  if (header === undefined) return null;
  const id = header.trim();
  if (PROVIDER_ID.test(id)) return id as ProviderId;
  const message = 'X-Inference-Provider-Id must be a provider id: 32 digits of lowercase hexadecimal.';
  throw new RequestError('invalid_request', 'X-Inference-Provider-Id', message);
}
