/**
 * Forged chains: a valid chain of the simulated authority with one change, and the rejection code that every verifier of this
 * network must return.
 */
import type { ChainMutation } from './mutation-bench.js';
import { documentMutations } from './mutations/document.js';
import { extensionMutations } from './mutations/extensions.js';
import { factMutations } from './mutations/facts.js';
import { pathMutations } from './mutations/path.js';

/** Every mutation, including valid variants. */
export const CHAIN_MUTATIONS: readonly ChainMutation[] = [
  { name: 'nothing changed', code: null, make: (bench) => bench.sample() },
  ...documentMutations,
  ...pathMutations,
  ...extensionMutations,
  ...factMutations,
];
