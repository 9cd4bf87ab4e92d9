/**
 * How the result of an ACME `device-attest-01` challenge reaches us: whoever runs the ACME server posts the token it gave out
 * and the device's answer, signed like a webhook. The post is only the carrier; the attestation object is what is verified.
 */
import { fromUtf8 } from '@inference/protocol';
import Type, { type Static } from 'typebox';
import { Compile } from 'typebox/compile';
import { isSignedBy, MAX_EVENT_AGE_MS, type WebhookRefusal } from './webhook.js';

const AcmeResultSchema = Type.Object({
  /** Token of the enrolment, from the address of the ACME directory in the profile. */
  enrolment: Type.String({ minLength: 1, maxLength: 256 }),
  /** Token of the challenge (RFC 8555 section 8.1). */
  token: Type.String({ maxLength: 256 }),
  /** `attObj` of the device's answer. */
  att_obj: Type.String({ maxLength: 65_536 }),
  created_at: Type.String({ maxLength: 64 }),
});
type AcmeResult = Static<typeof AcmeResultSchema>;
const schema = Compile(AcmeResultSchema);

export type OpenedAcmeResult =
  | { readonly ok: true; readonly result: { readonly enrolmentToken: string; readonly token: string; readonly attestationObject: string } }
  | { readonly ok: false; readonly code: WebhookRefusal };

/** Checks signature, form and age. Never throws. */
export function openAcmeResult(input: {
  readonly body: Uint8Array;
  readonly signature: string | undefined;
  readonly secret: string;
  readonly now: number;
}): OpenedAcmeResult {
  if (input.signature === undefined || input.signature === '') return { ok: false, code: 'webhook_unsigned' };
  if (!isSignedBy(input.secret, input.body, input.signature)) return { ok: false, code: 'webhook_bad_signature' };
  const result = parse(input.body);
  const createdAt = result === null ? Number.NaN : Date.parse(result.created_at);
  if (result === null || Number.isNaN(createdAt)) return { ok: false, code: 'webhook_malformed' };
  if (Math.abs(input.now - createdAt) > MAX_EVENT_AGE_MS) return { ok: false, code: 'webhook_stale' };
  return { ok: true, result: { enrolmentToken: result.enrolment, token: result.token, attestationObject: result.att_obj } };
}

function parse(body: Uint8Array): AcmeResult | null {
  try {
    const value: unknown = JSON.parse(fromUtf8(body));
    return schema.Check(value) ? value : null;
  } catch {
    return null;
  }
}
