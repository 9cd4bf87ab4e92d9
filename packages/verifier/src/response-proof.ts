/** `ResponseProof`: hash, signature and receipt of a response, from the headers or from a stream's signature event. */

export interface ResponseProof {
  /** Hexadecimal SHA-256 of the signed bytes, as stated by the response. */
  readonly responseHash: string;
  /** base64 of the enclave's signature over the 64 digits. */
  readonly signature: string;
  /** base64url of the receipt's exact JSON. */
  readonly receipt: string;
  /** base64. */
  readonly receiptSignature: string;
}

/** Headers of a response: a `Headers` object, or a plain object with names in any case. */
export type HeaderSource = { get(name: string): string | null } | Readonly<Record<string, string | readonly string[] | undefined>>;

/** The proof in the headers of a plain response. Absent members are empty and fail their check. */
export function proofFromHeaders(headers: HeaderSource): ResponseProof {
  return {
    responseHash: headerOf(headers, 'x-response-hash'),
    signature: headerOf(headers, 'x-se-signature'),
    receipt: headerOf(headers, 'x-inference-receipt'),
    receiptSignature: headerOf(headers, 'x-inference-receipt-signature'),
  };
}

/** Value of the header with this lower-case name; empty if absent. */
export function headerOf(headers: HeaderSource, name: string): string {
  if (isHeaders(headers)) return headers.get(name) ?? '';
  for (const [key, value] of Object.entries(headers)) {
    if (key.toLowerCase() === name) return typeof value === 'string' ? value : (value?.join(', ') ?? '');
  }
  return '';
}

function isHeaders(headers: HeaderSource): headers is { get(name: string): string | null } {
  return typeof headers.get === 'function';
}
