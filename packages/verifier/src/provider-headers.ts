/** Compares an answer's unsigned `X-Provider-…` and `X-Attestation-…` headers with the provider's attestation record. */
import type { AttestationRecord } from '@inference/protocol';
import { type HeaderSource, headerOf } from './response-proof.js';

/** Returns the names of headers that contradict or exceed the record. Absent headers are not compared. */
export function unsupportedHeaders(headers: HeaderSource, record: AttestationRecord): string[] {
  const same: Readonly<Record<string, string>> = {
    'x-provider-id': record.provider_id,
    'x-attestation-se-public-key': record.se_public_key,
    'x-provider-chip': headerText(record.chip_name),
    'x-provider-model': headerText(record.hardware_model),
    'x-provider-serial': headerText(record.serial_number),
    'x-attestation-device-serial': headerText(record.serial_number),
    'x-provider-secure-enclave': String(record.secure_enclave),
  };
  // Claims that may become true between the answer and the record. Headers may not claim more than the record.
  const limitedClaims: Readonly<Record<string, { readonly claim: string; readonly holds: boolean }>> = {
    'x-provider-attested': { claim: 'true', holds: record.attested },
    'x-provider-mda-verified': { claim: 'true', holds: record.mda_verified },
    'x-provider-trust-level': { claim: 'hardware', holds: record.trust_level === 'hardware' },
  };
  return [
    ...Object.keys(same).filter((name) => !['', same[name]].includes(headerOf(headers, name))),
    ...Object.keys(limitedClaims).filter((name) => headerOf(headers, name) === limitedClaims[name]?.claim && !limitedClaims[name].holds),
  ];
}

/** A text of the record as a header value: visible ASCII, trimmed (RFC 9110 section 5.5). */
function headerText(text: string): string {
  return text.replace(/[^\x20-\x7e]/g, '?').trim();
}
