/** Opens the transparency log, and renews the cosignatures of its checkpoint. */
import { everyPeriod } from '../database/periodic-work.js';
import type { Database } from '../database/tables.js';
import { errorFacts } from '../log.js';
import { TransparencyLog } from '../transparency-log/transparency-log.js';
import type { StartContext } from './start-context.js';

const REFRESH_MS = 300_000;

export async function openTransparencyLog({ config, log, disposal }: StartContext, database: Database): Promise<TransparencyLog> {
  const { origin, witnesses, quorum } = config.transparencyLog;
  const { publicOrigin } = config.console;
  const transparencyLog = await TransparencyLog.open({
    database,
    origin: origin ?? `${publicOrigin === null ? 'localhost' : new URL(publicOrigin).host}/e2e/log`,
    witnesses,
    quorum,
    onWitnessFailure: (error) => log.warn({ error: errorFacts(error) }, 'no cosignature from a witness'),
  });
  const onError = (error: unknown) => log.error({ error: errorFacts(error) }, 'the transparency log could not be published');
  // A coordinator that ended between an append and its publication left a leaf unpublished.
  const first = transparencyLog.refresh().catch(onError);
  disposal.defer(() => first);
  disposal.defer(
    everyPeriod({ database, name: 'publish transparency log', periodMs: REFRESH_MS, work: () => transparencyLog.refresh(), onError }),
  );
  return transparencyLog;
}
