/** All mutations of a valid chain: test cases for the chain verifiers of the coordinator and of `packages/verifier`. */
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
