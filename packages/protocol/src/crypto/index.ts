/** Sealing, signatures and digests on `node:crypto`. Browsers use `@inference/verifier` instead. */
export { keyIdOf, providerIdOf, sha256, sha256Hex } from './digest.js';
export { e2eKeyPair, nodeE2eCrypto } from './e2e-crypto.js';
export { type Encapsulation, encapsulate, type RecipientContext, type SenderContext, setupRecipient, setupSender } from './hpke.js';
export { RequestOpener, type SealedJobRequest, sealRequest } from './job-sealing.js';
export { cachedImport } from './key-cache.js';
export { type Ed25519KeyPair, ed25519KeyPairFrom, nodeLogCrypto } from './log-crypto.js';
export { p256PublicKeyPem, verifyP256, verifyP256Async } from './p256.js';
export { releaseKey, verifyRelease } from './release-signature.js';
export { MAX_RESPONSE_CHUNK_BYTES, ResponseOpener, ResponseSealer } from './response-sealing.js';
export { type ResponseHash, responseHash, verifyResponseSignature, verifyResponseSignatureAsync } from './response-signature.js';
export { SealingError, type SealingErrorCode } from './sealing-error.js';
export { generateSealingKeyPair, type SealingKeyPair, sealingKeyPairFrom } from './x25519.js';
