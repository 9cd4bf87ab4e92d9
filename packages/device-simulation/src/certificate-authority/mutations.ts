/**
 * What a forger might send instead of a genuine chain: a valid chain of the simulated authority with one thing changed, and
 * the rejection that every verifier of this network must give.
 */
import type { ChainMutation } from './mutation-bench.js';
import { documentMutations } from './mutations/document.js';
import { extensionMutations } from './mutations/extensions.js';
import { factMutations } from './mutations/facts.js';
import { pathMutations } from './mutations/path.js';

/** Every mutation, valid ones included. */
export const CHAIN_MUTATIONS: readonly ChainMutation[] = [
  { name: 'nothing changed', code: null, make: (bench) => bench.sample() },
  ...documentMutations,
  ...pathMutations,
  ...extensionMutations,
  ...factMutations,
];
