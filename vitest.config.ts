import { defineConfig } from 'vitest/config';
import { LongestFirst } from './test/support/longest-first.js';

const ALL = ['packages/*/test/**/*.test.ts', 'apps/*/test/**/*.test.ts', 'test/**/*.test.ts', 'scripts/**/*.test.ts'];

/** Files that load llama.cpp into the test's own process. It is native code, which a process loads once and never unloads. */
const ALONE = ['scripts/make-model.test.ts', 'apps/provider/test/engine/logprobs.test.ts', 'apps/provider/test/engine/chat-prompt.test.ts'];

/** Tests of releases: packages, reproducible builds, installation and upgrades. `npm run test:release` runs them, `npm test` does not. */
const RELEASE = [
  'scripts/release/**/*.test.ts',
  'packages/client/test/package.test.ts',
  'test/installation.test.ts',
  'test/upgrade.test.ts',
];

/** Whole-network tests that run once more with every provider connected to a second coordinator. */
const CLUSTER = [
  'billing/billing',
  'images/waiting-for-images',
  'inference/attempt/hedging',
  'inference/delivery/cancellation',
  'inference/queue/request-queue',
  'inference/request/routing-preferences',
  'inference/settlement/refusals',
  'routes/inference/formats',
  'routes/providers/own-status',
].map((name) => `apps/coordinator/test/${name}.test.ts`);

const SETUP = ['fixed-seeds', 'byte-equality', 'leaves-no-trace', 'stuck/watch'].map((name) => `test/support/${name}.ts`);

// One run for the whole repository. Packages are tested through their sources, and see each other through their builds.
// Test files share three processes, as loading the sources anew for each file took a third of the run; `leaves-no-trace`
// fails a file that would be felt by the next.
export default defineConfig({
  test: {
    pool: 'forks',
    // Three workers keep two cores busy. A fourth slows whole-network tests beyond their limit on a slow machine.
    maxWorkers: 3,
    testTimeout: 120_000,
    hookTimeout: 120_000,
    // The default of a second is no time for a machine under load.
    expect: { poll: { timeout: 60_000 } },
    sequence: { sequencer: LongestFirst },
    globalSetup: 'test/support/drop-databases.ts',
    projects: [
      { extends: true, test: { name: 'alone', include: ALONE, isolate: true } },
      { extends: true, test: { name: 'cluster', include: CLUSTER, isolate: false, env: { HARNESS: 'cluster' }, setupFiles: SETUP } },
      { extends: true, test: { name: 'shared', include: ALL, exclude: [...ALONE, ...RELEASE], isolate: false, setupFiles: SETUP } },
      { extends: true, test: { name: 'release', include: RELEASE, isolate: false, setupFiles: SETUP } },
    ],
  },
});
