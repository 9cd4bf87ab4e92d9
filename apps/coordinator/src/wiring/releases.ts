/** `openReleases` opens the file of agent releases, and the rollouts, which offer new versions to machines in stages. */
import { randomUUID } from 'node:crypto';
import { RolloutRepository } from '../database/rollout-repository.js';
import type { Database } from '../database/tables.js';
import type { ProviderRegistry } from '../providers/provider-registry.js';
import { connectedMachine } from '../releases/connected-machine.js';
import type { JobOutcomes } from '../releases/job-outcomes.js';
import { CHECK_MS, RolloutChecks, readFindings } from '../releases/rollout-checks.js';
import { RolloutService } from '../releases/rollout-service.js';
import { AgentReleaseFile } from '../routes/providers/agent-release-file.js';
import type { Metrics } from '../telemetry/metrics.js';
import type { StartContext } from './start-context.js';

export interface ReleaseServices {
  readonly releases: AgentReleaseFile;
  readonly rollouts: RolloutService;
  /** Records this coordinator's machines, and advances or halts rollouts, even if another coordinator just did. */
  readonly checkRollouts: () => Promise<void>;
  /** Versions in the release file. */
  readonly published: () => Promise<readonly string[]>;
}

interface ReleaseDeps {
  readonly database: Database;
  readonly registry: ProviderRegistry;
  readonly outcomes: JobOutcomes;
  readonly metrics: Metrics;
}

export async function openReleases(
  context: StartContext,
  { database, registry, outcomes, metrics }: ReleaseDeps,
): Promise<ReleaseServices> {
  const { config, log, now, onWriteError, changeHints, disposal, refresh, options } = context;
  const releases = new AgentReleaseFile(config.agentReleases, (problem) =>
    log.error({ path: config.agentReleases, problem }, 'the release file cannot be used'),
  );
  const published = async (): Promise<readonly string[]> => (await releases.all()).map(({ version }) => version);
  const repository = new RolloutRepository(database);
  const localMachines = function* () {
    for (const provider of registry.snapshots()) yield connectedMachine(provider);
  };
  const rollouts = await RolloutService.open({
    repository,
    now,
    localMachines,
    onError: onWriteError,
    onWrite: () => changeHints.publish('rollouts'),
    ...refresh,
  });
  disposal.defer(() => rollouts.close());
  await rollouts.begin(await published());
  changeHints.on('rollouts', () => rollouts.changedElsewhere());
  const coordinatorId = config.cluster?.id ?? randomUUID();
  disposal.defer(() => repository.removeFleet(coordinatorId).catch(onWriteError));
  const checks = new RolloutChecks({
    database,
    repository,
    service: rollouts,
    outcomes,
    localMachines,
    published,
    coordinatorId,
    now,
    onHalt: (version, reason) => {
      log.error({ version, reason }, 'agent release halted');
      metrics.rolloutHalted();
    },
    onStage: (version, stage) => log.info({ version, stage }, 'agent release reached its next stage'),
  });
  /** End of the last requested check. Checks run one after another. */
  let running: Promise<void> = Promise.resolve();
  let unfinished = 0;
  const checkRollouts = (periodMs = 0): Promise<void> => {
    unfinished++;
    running = running
      .catch(() => {})
      .then(() => checks.run(periodMs))
      .finally(() => unfinished--);
    return running;
  };
  const everyMs = options.rolloutCheckMs ?? CHECK_MS;
  const timer = setInterval(() => {
    if (unfinished === 0) void checkRollouts(everyMs).catch(onWriteError);
  }, everyMs);
  timer.unref();
  disposal.defer(async () => {
    clearInterval(timer);
    await running.catch(() => {});
  });
  registerRolloutGauges(metrics, rollouts);
  return { releases, rollouts, checkRollouts, published };
}

function registerRolloutGauges(metrics: Metrics, rollouts: RolloutService): void {
  metrics.gauge('rollouts', 'Agent versions by the state of their rollout.', ['state'], function* () {
    for (const { state } of rollouts.rows.values()) yield [{ state }, 1];
  });
  metrics.gauge('rollout_machines', 'Machines of unfinished rollouts, by state.', ['state'], function* () {
    for (const row of rollouts.rows.values()) {
      const machines = row.state === 'complete' ? null : (readFindings(row)?.machines ?? null);
      if (machines === null) continue;
      for (const [state, count] of Object.entries(machines)) yield [{ state }, count];
    }
  });
}
