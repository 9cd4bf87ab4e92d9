/**
 * Protocol shared by coordinator, provider and every verifier. No file, socket or process access and no Node imports, so the
 * package runs in browsers. Crypto on `node:crypto` is in `@inference/protocol/crypto`.
 */
export * from './bytes.js';
export * from './canonical-json.js';
export * from './chips.js';
export * from './ecdsa-der.js';
export * from './ids.js';
export * from './image-parts.js';
export * from './job-context.js';
export * from './label.js';
export * from './machine-earnings.js';
export * from './provider-status.js';
export * from './release.js';
export * from './reported-usage.js';
export * from './statements/attestation.js';
export * from './statements/challenge.js';
export * from './statements/key.js';
export * from './statements/receipt.js';
export * from './statements/signed-statement.js';
export * from './trust/attestation-record.js';
export * from './trust/chain-rejection.js';
export * from './trust/nonce-preimage.js';
export * from './trust/trust-parts.js';
export * from './usage-bounds.js';
export * from './wire/availability.js';
export * from './wire/coordinator-messages.js';
export * from './wire/enrolment.js';
export * from './wire/frame.js';
export * from './wire/job-failure.js';
export * from './wire/limits.js';
export * from './wire/link.js';
export * from './wire/model-offer.js';
export * from './wire/models-refused.js';
export * from './wire/parse-message.js';
export * from './wire/provider-messages.js';
export * from './wire/rejection.js';
export * from './wire/trust-message.js';
export * from './wire/version.js';
