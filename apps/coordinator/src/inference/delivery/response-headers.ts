/** Headers of successful responses: provider and attestation, signature and receipt, and request members that had no effect. */
import type { SignedParts } from '@inference/formats';
import { toBase64 } from '@inference/protocol';
import type { ProviderConnection } from '../../providers/provider-connection.js';
import type { Identity } from '../../providers/session/registration/admission.js';

type Headers = Record<string, string>;

/** Headers that stay the same for an identity. Cached, because each response needs them. */
const fixedHeaders = new WeakMap<Identity, Headers>();

export function providerHeaders(provider: ProviderConnection): Headers {
  const { identity } = provider.registration;
  let fixed = fixedHeaders.get(identity);
  if (fixed === undefined) {
    fixed = describe(identity);
    fixedHeaders.set(identity, fixed);
  }
  return {
    'X-Provider-Attested': String(provider.isAttested),
    'X-Provider-Trust-Level': provider.trustLevel ?? 'self_signed',
    'X-Provider-Mda-Verified': String(provider.isDeviceChainVerified),
    ...fixed,
  };
}

/** Headers of a verified response that is not a stream. */
export function plainHeaders(provider: ProviderConnection, signed: SignedParts, ignored: readonly string[]): Headers {
  return {
    'Content-Type': 'application/json; charset=utf-8',
    ...providerHeaders(provider),
    ...signatureHeaders(signed),
    ...ignoredHeader(ignored),
  };
}

/** Headers with the response signature and the receipt, both signed by the provider's enclave. */
export function signatureHeaders(signed: SignedParts): Headers {
  return {
    'X-Se-Signature': signed.signature,
    'X-Response-Hash': signed.responseSha256,
    'X-Inference-Receipt': signed.receipt,
    'X-Inference-Receipt-Signature': signed.receiptSignature,
  };
}

/** Maximum listed characters in the header's value. Proxies limit header lines. */
const MAX_IGNORED_LENGTH = 1024;

/** Header that lists request members without effect. Empty if there are none. */
export function ignoredHeader(ignored: readonly string[]): Headers {
  if (ignored.length === 0) return {};
  let shown = '';
  for (const [index, name] of ignored.entries()) {
    const next = `${shown}${index === 0 ? '' : ', '}${headerText(name)}`;
    if (next.length > MAX_IGNORED_LENGTH) return { 'X-Inference-Ignored': `${shown}, ...` };
    shown = next;
  }
  return { 'X-Inference-Ignored': shown };
}

function describe({ attestation, providerId, publicKey }: Identity): Headers {
  const serial = headerText(attestation.serial_number);
  return {
    'X-Provider-Chip': headerText(attestation.chip_name),
    'X-Provider-Id': providerId,
    'X-Provider-Model': headerText(attestation.hardware_model),
    'X-Provider-Serial': serial,
    'X-Provider-Secure-Enclave': String(attestation.posture.secure_enclave),
    'X-Attestation-Se-Public-Key': toBase64(publicKey),
    'X-Attestation-Device-Serial': serial,
  };
}

/** Replaces characters outside printable ASCII. Providers and clients choose these texts. */
function headerText(text: string): string {
  return text.replace(/[^\x20-\x7e]/g, '?').trim();
}
