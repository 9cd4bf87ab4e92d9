import { simulatedHelperCommand } from '../src/commands.js';
import { describeHelperContract } from './contract.js';

describeHelperContract('simulated helper', (dataDir) => simulatedHelperCommand({ dataDir }));

// The Swift helper: on a Mac, or built on Linux against software stand-ins by scripts/ci/check-swift.sh.
const native = process.env.ENCLAVE_HELPER;
if (native !== undefined && native !== '') describeHelperContract('native helper', (dataDir) => [native, '--data-dir', dataDir]);
