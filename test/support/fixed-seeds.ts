/** Setup for all test files: property tests try the same inputs in each run, unless a test gives another seed. */
import fc from 'fast-check';

fc.configureGlobal({ seed: 20_261_126 });
