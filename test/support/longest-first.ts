/** Vitest sequencer that starts the slowest test files first: by durations of earlier runs, else by this list and file sizes. */
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Slowest files, longest first. An outdated list costs only seconds. */
const LONG = [
  'test/console/operator-pages.test.ts',
  'test/console/owner-pages.test.ts',
  'test/start.test.ts',
  'test/cluster.test.ts',
  'scripts/verify-response.test.ts',
  'test/console/client-pages.test.ts',
  'test/account.test.ts',
  'apps/provider/test/service/service.test.ts',
  'test/verify-network.test.ts',
  'test/faults/providers.test.ts',
  'test/availability.test.ts',
  'test/console/public-pages.test.ts',
  'apps/provider/test/engine/engine-repeatable.test.ts',
  'test/installation.test.ts',
  'test/faults/backpressure.test.ts',
  'test/faults/agents.test.ts',
  'test/unwanted-work.test.ts',
  'test/many-requests.test.ts',
  'test/verifiers-agree.test.ts',
  'apps/provider/test/engine/tokenizer.test.ts',
  'test/failures.test.ts',
  'apps/provider/test/engine/engine-isolation.test.ts',
  'apps/provider/test/engine/grammar.test.ts',
  'apps/coordinator/test/process/process.test.ts',
  'test/explain.test.ts',
  'test/console/playground.test.ts',
  'test/verify.test.ts',
  'test/attacks/count-tokens.test.ts',
  'test/managed.test.ts',
  'test/structured-output.test.ts',
  'apps/coordinator/test/providers/reputation/misbehaviour.test.ts',
  'test/faults/coordinator.test.ts',
  'test/llmprobe.test.ts',
  'apps/coordinator/test/billing/billing.test.ts',
  'apps/provider/test/daemon/start-failures.test.ts',
  'apps/provider/test/models/hostile-models.test.ts',
  'test/faults/clients.test.ts',
  'test/image-generation.test.ts',
  'test/console/verify-in-browser.test.ts',
  'test/readme.test.ts',
  'apps/coordinator/test/inference/delivery/slow-clients.test.ts',
  'apps/coordinator/test/process/held-open-requests.test.ts',
  'packages/enclave/test/client.test.ts',
  'apps/provider/test/daemon/models-live.test.ts',
  'apps/coordinator/test/providers/session/back-pressure.test.ts',
  'test/embeddings.test.ts',
  'apps/coordinator/test/billing/ledger/credit-leases.test.ts',
  'apps/coordinator/test/cluster/shared-limits.test.ts',
  'packages/enclave/test/contract.test.ts',
  'apps/coordinator/test/billing/ledger/maturity.test.ts',
];

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    // Stable sort: the base order remains within a rank.
    return sorted.sort((one, other) => rank(one) - rank(other));
  }
}

/** Isolated files (one process per file) run first, then project `cluster`. Files that share a process must be adjacent. */
function rank({ moduleId, project }: TestSpecification): number {
  if (project.config.isolate) return 0;
  if (project.name === 'cluster') return 1;
  const place = LONG.findIndex((name) => moduleId.endsWith(`/${name}`));
  return place === -1 ? LONG.length + 2 : place + 2;
}
