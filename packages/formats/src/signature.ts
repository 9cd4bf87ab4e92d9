/** The signature of a response as streams carry it: as members of an event, or in a comment block (design: who renders). */
import type { SignedParts } from './format.js';

export function signatureMembers({ signature, responseSha256, receipt, receiptSignature }: SignedParts) {
  return { se_signature: signature, response_hash: responseSha256, receipt, receipt_signature: receiptSignature };
}

/**
 * A comment block, for formats whose clients take no events but their own. It is no part of the signed bytes, and neither
 * is anything after it.
 */
export function signatureComment(signed: SignedParts): string {
  return `: inference-signature ${JSON.stringify(signatureMembers(signed))}\n\n`;
}
