/** Entry of the client package for Node: the same client on `node:crypto`, and a file store. */
import { nodeE2eCrypto } from '@inference/protocol/crypto';
import { type CheckpointVerifier, type LogVerifier, logVerifierFrom } from './network/log-verifier.js';
import { type VerifiedFetch, type VerifiedFetchOptions, verifiedFetch } from './verified-fetch.js';

export * from './exports.js';
export { fileStore } from './file-store.js';
export { imageFromFile } from './image-file.js';

/** Creates a verified fetch. See {@link VerifiedFetchOptions}; throws `PolicyError` or `TypeError` for an invalid option. */
export function createVerifiedFetch(options: VerifiedFetchOptions): VerifiedFetch {
  return verifiedFetch(nodeE2eCrypto, options);
}

/** Creates a value for the option `logVerifier` from a verifier of checkpoints. */
export function createLogVerifier<Stored>(verifier: CheckpointVerifier<Stored>): LogVerifier {
  return logVerifierFrom(nodeE2eCrypto, verifier);
}
