/** Entry of the client package for browsers and other runtimes without `node:crypto`. */
import { nobleE2eCrypto } from './crypto/noble-crypto.js';
import { type CheckpointVerifier, type LogVerifier, logVerifierFrom } from './network/log-verifier.js';
import { type VerifiedFetch, type VerifiedFetchOptions, verifiedFetch } from './verified-fetch.js';

export * from './exports.js';

/** Creates a verified fetch. See {@link VerifiedFetchOptions}; throws `PolicyError` or `TypeError` for an invalid option. */
export function createVerifiedFetch(options: VerifiedFetchOptions): VerifiedFetch {
  return verifiedFetch(nobleE2eCrypto, options);
}

/** Creates a value for the option `logVerifier` from a verifier of checkpoints. */
export function createLogVerifier<Stored>(verifier: CheckpointVerifier<Stored>): LogVerifier {
  return logVerifierFrom(nobleE2eCrypto, verifier);
}
