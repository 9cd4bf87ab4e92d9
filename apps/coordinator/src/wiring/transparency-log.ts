/**
 * `openTransparencyLog` opens the public append-only log of the network, and publishes it periodically. Witnesses (third parties) cosign.
 *
 * `recordNetwork` appends the connected providers, quarantines and agent releases.
 */
import { type LogEntry, providerLogEntry } from '@inference/protocol';
import { sha256 } from '@inference/protocol/crypto';
import { PeriodicRefresh } from '../database/periodic-refresh.js';
import { everyPeriod } from '../database/periodic-work.js';
import type { QuarantineRepository } from '../database/providers/quarantine-repository.js';
import type { Database } from '../database/tables.js';
import { errorFacts } from '../log.js';
import type { ProviderRegistry } from '../providers/provider-registry.js';
import type { AgentReleaseFile } from '../routes/providers/agent-release-file.js';
import type { Metrics } from '../telemetry/metrics.js';
import { TransparencyLog } from '../transparency-log/transparency-log.js';
import type { StartContext } from './start-context.js';

const REFRESH_MS = 300_000;

export async function openTransparencyLog(
  { config, log, disposal }: StartContext,
  { database, metrics }: { readonly database: Database; readonly metrics: Metrics },
): Promise<TransparencyLog> {
  const { origin, witnesses, quorum } = config.transparencyLog;
  const { publicOrigin } = config.console;
  const transparencyLog = await TransparencyLog.open({
    database,
    origin: origin ?? `${publicOrigin === null ? 'localhost' : new URL(publicOrigin).host}/e2e/log`,
    witnesses,
    quorum,
    onCosigned: (witness) => metrics.witnessAsked(witness, 'cosigned'),
    onWitnessFailure: (error, witness) => {
      metrics.witnessAsked(witness, 'failed');
      log.warn({ error: errorFacts(error) }, 'no cosignature from a witness');
    },
  });
  const onError = (error: unknown) => log.error({ error: errorFacts(error) }, 'the transparency log could not be published');
  // Publishes entries of a coordinator that stopped after it had appended them.
  const first = transparencyLog.refresh().catch(onError);
  disposal.defer(() => first);
  disposal.defer(
    everyPeriod({ database, name: 'publish transparency log', periodMs: REFRESH_MS, work: () => transparencyLog.refresh(), onError }),
  );
  return transparencyLog;
}

interface RecordedNetwork {
  readonly transparencyLog: TransparencyLog;
  readonly registry: ProviderRegistry;
  readonly quarantines: QuarantineRepository;
  readonly releases: AgentReleaseFile;
}

/** Appends what is new every five minutes, and at once after a change of quarantines. */
export function recordNetwork({ disposal, log }: StartContext, network: RecordedNetwork): void {
  const { transparencyLog, quarantines } = network;
  const onError = (error: unknown) => log.error({ error: errorFacts(error) }, 'the transparency log could not be written');
  const record = async (): Promise<void> => transparencyLog.appendAll(await networkEntries(network));
  let running: Promise<void> = Promise.resolve();
  const read = (): Promise<void> => {
    running = record().catch(onError);
    return running;
  };
  const recording = new PeriodicRefresh({ read, everyMs: REFRESH_MS, onError });
  // Not awaited, because slow witnesses must not delay the start.
  const beginning = recording.begin();
  disposal.defer(async () => {
    await beginning;
    recording.close();
    await running;
  });
  // Keeps the listener that `openProviders` has set.
  const { onChange } = quarantines;
  quarantines.onChange = (providerIds) => {
    onChange(providerIds);
    void recording.refreshNow();
  };
}

async function networkEntries({ registry, quarantines, releases }: RecordedNetwork): Promise<LogEntry[]> {
  return [
    ...Array.from(quarantines.all, ([provider_id, { since }]) => ({ v: 1 as const, kind: 'revoked' as const, provider_id, since })),
    ...Array.from(await releases.all(), ({ platform, version, sha256: hash }) => ({
      v: 1 as const,
      kind: 'release' as const,
      platform,
      version,
      sha256: hash,
    })),
    ...Array.from(registry.snapshots(), ({ registration }) => providerLogEntry(sha256, registration.identity.publicKey)),
  ];
}
