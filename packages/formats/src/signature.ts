/** Renders the response signature in a stream: as members of an event, or as an SSE comment. */
import type { SignedParts } from './format.js';

export function signatureMembers({ signature, responseSha256, receipt, receiptSignature }: SignedParts) {
  return { se_signature: signature, response_hash: responseSha256, receipt, receipt_signature: receiptSignature };
}

/** SSE comment with the signature. The comment and later bytes are not signed. */
export function signatureComment(signed: SignedParts): string {
  return `: inference-signature ${JSON.stringify(signatureMembers(signed))}\n\n`;
}
