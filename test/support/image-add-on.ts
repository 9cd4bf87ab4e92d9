/** Where tests find the engine stable-diffusion.cpp: outside the checkout, because it is large and changes seldom. */
import { homedir } from 'node:os';
import { join } from 'node:path';
import { addOnPath, isAddOnInstalled } from '../../apps/provider/src/models/library/add-on.js';

export const TEST_ADD_ON = addOnPath(join(homedir(), '.cache', 'inference-network'));

/** Whether it is there; says so loudly where it is not. */
export function hasImageAddOn(): boolean {
  const isThere = isAddOnInstalled(TEST_ADD_ON);
  if (!isThere) console.warn(`NOT TESTED: stable-diffusion.cpp is not installed in ${TEST_ADD_ON}. Install it with: npm run image-add-on`);
  return isThere;
}
