/** Setup for all test files: property tests use the same inputs in each run. `PROPERTY_SEED` changes the inputs. */
import fc from 'fast-check';

fc.configureGlobal({ seed: Number(process.env.PROPERTY_SEED ?? 20_261_126) });
