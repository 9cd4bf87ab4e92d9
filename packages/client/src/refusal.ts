/** Closed list of reasons for refusing to send a request or to accept an answer. */
export const E2E_REFUSAL_CODES = [
  /** A sealing key differs from the key that the provider's enclave signed. */
  'key_unbound',
  /** A key, challenge, certificate chain, keyset or checkpoint is too old, about to expire or not valid yet. */
  'stale',
  /** Part of the answer does not open: altered, out of order, or of another answer or candidate. */
  'open_failed',
  /** The answer ends before its final frame or its proof, or within an event of its stream. */
  'truncated',
  /** The coordinator offers less than end-to-end mode: a plain answer, a redirect, or a missing, invalid or empty keyset. */
  'downgraded',
  /** The receipt names another model or endpoint. */
  'wrong_model',
  /** The receipt or the signature of the answer does not verify or belongs to another exchange, or its stream is malformed. */
  'bad_proof',
  /** An error, or a malformed or oversized answer, that the coordinator can have caused. Never part of the output. */
  'coordinator_said',
  /** The provider's protections are off, or it missed its newest challenge. */
  'revoked',
  /** The transparency log does not include the keyset, or contradicts the log that this client has seen. */
  'split_view',
  /** Signs of an attack on this client: keys that other clients do not get, too few, too new or suddenly simulated providers. */
  'targeted',
  /** The evidence verifies but is below the policy, or is contradicted. */
  'policy',
  /** No provider in the keyset serves the model. */
  'no_candidates',
  /** A request that end-to-end mode cannot carry: another origin, path or method, an unsupported option, or not a valid request. */
  'not_sealable',
] as const;
export type E2ERefusalCode = (typeof E2E_REFUSAL_CODES)[number];

export class E2ERefused extends Error {
  override readonly name = 'E2ERefused';

  constructor(
    readonly code: E2ERefusalCode,
    message: string,
    /** HTTP status of the coordinator's error, for `coordinator_said`; null: none. */
    readonly status: number | null = null,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}
