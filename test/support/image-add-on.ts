/** Location of stable-diffusion.cpp for tests. Outside the checkout, because the engine is large and changes rarely. */
import { homedir } from 'node:os';
import { join } from 'node:path';
import { addOnPath, isAddOnInstalled } from '../../apps/provider/src/models/store/add-on.js';

export const TEST_ADD_ON = addOnPath(join(homedir(), '.cache', 'inference-network'));

/** Whether the add-on is installed; prints a visible notice otherwise. */
export function hasImageAddOn(): boolean {
  const isThere = isAddOnInstalled(TEST_ADD_ON);
  if (!isThere) console.warn(`NOT TESTED: stable-diffusion.cpp is not installed in ${TEST_ADD_ON}. Install it with: npm run image-add-on`);
  return isThere;
}
