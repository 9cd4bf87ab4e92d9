/** Exports that the entries for browsers (index.ts) and Node (node.ts) share. */
export { type ImageData, ImageError, imageFromBytes } from './images/image-data.js';
export type { AcceptedKeyset, CheckpointVerdict, CheckpointVerifier, LoggedLeaf, LogTree, LogVerifier } from './network/log-verifier.js';
export { memoryStore, type Store } from './network/store.js';
export type { VerifiedProvider } from './network/verified-provider.js';
export { DEFAULT_POLICY, type Policy, PolicyError, type PolicyInput, parsePolicy } from './policy/policy.js';
export { E2E_REFUSAL_CODES, type E2ERefusalCode, E2ERefused } from './refusal.js';
export { type E2eVerdict, verdictOf } from './verdict.js';
export type { Exchange, VerifiedFetch, VerifiedFetchOptions } from './verified-fetch.js';
