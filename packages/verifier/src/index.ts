/** Verification of answers and attestation statements, for outsiders. Runs in Node and in browsers. */
export * from './chain/anchor.js';
export type { DeviceFacts } from './chain/device-facts.js';
export * from './chain/verify-device-chain.js';
export * from './checks.js';
export { sha256Hex } from './digest.js';
export { verifyP256InBrowser } from './p256.js';
export { unsupportedHeaders } from './provider-headers.js';
export type { Expected } from './receipt-checks.js';
export type { ActiveTrustAnchor } from './record/certificate-evidence.js';
export { deviceNonce, legacyNonce } from './record/certificate-evidence.js';
export * from './record/finding.js';
export * from './record/verify-record.js';
export * from './response-proof.js';
export * from './signed-stream.js';
export * from './verify-answer.js';
export * from './verify-attestation.js';
export * from './verify-response.js';
