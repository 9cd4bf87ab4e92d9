/**
 * The order in which test files start: the longest first, so that the run does not end with one worker that waits for the
 * other. A checkout that has run them knows their durations; a fresh one goes by this list and by size.
 */
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** What took longest, longest first. A name that is missing or outdated costs some seconds of waiting, nothing else. */
const LONG = [
  'test/start.test.ts',
  'test/llmprobe.test.ts',
  'test/failures.test.ts',
  'apps/provider/test/engine-isolation.test.ts',
  'apps/coordinator/test/process/process.test.ts',
  'test/console/public-pages.test.ts',
  'test/structured-output.test.ts',
  'test/many-requests.test.ts',
  'apps/provider/test/engine.test.ts',
  'apps/provider/test/grammar.test.ts',
  'test/managed.test.ts',
  'apps/coordinator/test/routes/accounts/accounts.test.ts',
  'scripts/verify-response.test.ts',
  'test/sdk-helpers.test.ts',
  'test/verify-network.test.ts',
  'packages/enclave/test/contract.test.ts',
];

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    // Stable: within a rank the order stays that of the base.
    return sorted.sort((one, other) => rank(one) - rank(other));
  }
}

/** Files that run in a process of their own come first, so that those that share one are in a row and keep it. */
function rank({ moduleId, project }: TestSpecification): number {
  if (project.config.isolate) return 0;
  const place = LONG.findIndex((name) => moduleId.endsWith(`/${name}`));
  return place === -1 ? LONG.length + 1 : place + 1;
}
