/** Valid chains with one change each, and the rejection code that every verifier must return for it. */
import type { ChainMutation } from './mutation-bench.js';
import { documentMutations } from './mutations/document.js';
import { extensionMutations } from './mutations/extensions.js';
import { factMutations } from './mutations/facts.js';
import { pathMutations } from './mutations/path.js';

export const CHAIN_MUTATIONS: readonly ChainMutation[] = [
  { name: 'nothing changed', code: null, make: (bench) => bench.sample() },
  ...documentMutations,
  ...pathMutations,
  ...extensionMutations,
  ...factMutations,
];
