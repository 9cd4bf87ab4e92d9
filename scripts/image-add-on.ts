/** Installs stable-diffusion.cpp at the path that tests expect, and prints the path. CI runs this script before the tests. */
import { installAddOn } from '../apps/provider/src/models/store/add-on.js';
import { TEST_ADD_ON } from '../test/support/image-add-on.js';

await installAddOn(TEST_ADD_ON, AbortSignal.timeout(10 * 60_000));
console.log(`stable-diffusion.cpp is installed in ${TEST_ADD_ON}`);
