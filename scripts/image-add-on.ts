/** Installs the engine stable-diffusion.cpp where the tests look for it, and says where that is. CI runs it before the tests. */
import { installAddOn } from '../apps/provider/src/models/library/add-on.js';
import { TEST_ADD_ON } from '../test/support/image-add-on.js';

await installAddOn(TEST_ADD_ON, AbortSignal.timeout(10 * 60_000));
console.log(`stable-diffusion.cpp is installed in ${TEST_ADD_ON}`);
