/** What someone outside uses to verify answers and attestation statements. Runs in Node and in browsers. */
export * from './checks.js';
export { sha256Hex } from './digest.js';
export { verifyP256InBrowser } from './p256.js';
export type { Expected } from './receipt-checks.js';
export * from './response-proof.js';
export * from './signed-stream.js';
export * from './verify-attestation.js';
export * from './verify-response.js';
