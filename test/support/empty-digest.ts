import type { ModelDigest } from '@inference/scheduler';

/** Digest of a model that nobody serves, to change in a test or a simulation. */
export const EMPTY_DIGEST: ModelDigest = {
  serving: 0,
  totalSlots: 0,
  freeSlots: 0,
  trustedSlots: 0,
  trustedFreeSlots: 0,
  cold: 0,
  loading: 0,
  queueLength: 0,
  meanServiceMs: null,
  maxContextTokens: null,
  imageSizes: [],
  classes: [],
};
