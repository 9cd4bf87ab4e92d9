/**
 * Wires the coordinator together and takes it apart again. The only file that knows all the parts; everything it makes, it
 * also closes.
 */
import { join } from 'node:path';
import type { Config } from './config.js';
import { Fleet, type FleetEvent } from './fleet/fleet.js';
import { openProviderGate } from './fleet/provider-gate.js';
import { FLEET_TIMINGS, type FleetTimings } from './fleet/timings.js';
import { JobRunner } from './inference/job-runner.js';
import { JOB_TIMINGS, type JobTimings, MAX_WAITING_PER_MODEL } from './inference/timings.js';
import { WaitingRoom } from './inference/waiting-room.js';
import { errorFacts, type Log } from './log.js';
import { addAttestation } from './routes/attestation.js';
import { requireKey } from './routes/authenticate.js';
import { createHttpServer } from './routes/http-server.js';
import { addInference } from './routes/inference.js';
import { addModels } from './routes/models.js';
import { addOpenApi } from './routes/openapi.js';
import { addOperations } from './routes/operations.js';
import { addReceipts } from './routes/receipts.js';
import { reasonOf, StartError } from './start-error.js';
import { type DevelopmentKeys, ensureDevelopmentKeys } from './store/development-keys.js';
import { KeyRing } from './store/key-ring.js';
import { openDatabase } from './store/open-database.js';
import { ReceiptBook } from './store/receipt-book.js';
import type { Database } from './store/tables.js';

export interface AppOptions {
  readonly config: Config;
  readonly log: Log;
  /** Tests shorten these. */
  readonly fleetTimings?: Partial<FleetTimings>;
  readonly jobTimings?: Partial<JobTimings>;
  readonly maxWaitingPerModel?: number;
  readonly now?: () => number;
  readonly random?: () => number;
}

export interface App {
  /** `http://host:port` */
  readonly address: string;
  readonly developmentKeys: DevelopmentKeys | null;
  readonly fleet: Fleet;
  readonly keyRing: KeyRing;
  readonly database: Database;
  /** Stops taking requests, lets running ones end within `graceMs`, says goodbye to providers and closes everything. */
  close(graceMs?: number): Promise<void>;
}

/** Running streams may take this long to end after a shutdown began, in milliseconds. */
const GRACE_MS = 4000;
/** Last answers and closing handshakes may take this long after it. */
const FLUSH_MS = 750;

/** Starts a coordinator. Throws StartError with a sentence for the operator. */
export async function startApp(options: AppOptions): Promise<App> {
  const { config, log, now = Date.now, random = Math.random } = options;
  const directory = join(config.dataDir, 'coordinator');
  const database = await openDatabase(join(directory, 'coordinator.db'));
  const onWriteError = (error: unknown): void => log.error({ error: errorFacts(error) }, 'database write failed');
  const keyRing = new KeyRing({ database, now, onWriteError });
  const receipts = new ReceiptBook({ database, onWriteError });
  const fleet = new Fleet({
    rules: {
      timings: { ...FLEET_TIMINGS, challengeIntervalMs: config.challengeIntervalMs, ...options.fleetTimings },
      allowSimulatedEnclave: config.allowSimulatedEnclave,
      now,
    },
    random,
    onEvent: (event) => logFleet(log, event),
  });
  const waitingRoom = new WaitingRoom(fleet, options.maxWaitingPerModel ?? MAX_WAITING_PER_MODEL);
  const jobTimings = { ...JOB_TIMINGS, ...options.jobTimings };
  const runner = new JobRunner({ fleet, waitingRoom, timings: jobTimings, now });
  let stopping = false;
  const server = createHttpServer({ maxRequestBytes: config.maxRequestBytes, log, stopping: () => stopping });
  const guard = requireKey(keyRing, 'api', onWriteError);
  addInference(server, guard, { runner, receipts, timings: jobTimings, log, now });
  addModels(server, guard, fleet);
  addReceipts(server, guard, receipts);
  addAttestation(server, fleet);
  addOpenApi(server);
  addOperations(server, requireKey(keyRing, 'admin', onWriteError), fleet, waitingRoom);
  const closeGate = openProviderGate(server.server, fleet);

  const closeStores = async (): Promise<void> => {
    fleet.close();
    closeGate();
    await keyRing.close();
    await receipts.close();
    await database.destroy();
  };

  const close = async (graceMs = GRACE_MS): Promise<void> => {
    stopping = true;
    const closed = server.close();
    fleet.dismiss('idle');
    waitingRoom.close();
    await Promise.race([runner.whenIdle(), pause(graceMs)]);
    runner.stop();
    fleet.dismiss('all');
    await Promise.race([closed, pause(FLUSH_MS)]);
    server.server.closeAllConnections();
    fleet.close();
    await closed;
    await closeStores();
  };

  try {
    const developmentKeys = config.development
      ? await ensureDevelopmentKeys(database, join(directory, 'development-keys.json'), now())
      : null;
    const address = await listen(() => server.listen({ host: config.host, port: config.port }), config);
    return { address, developmentKeys, fleet, keyRing, database, close };
  } catch (error) {
    await server.close();
    await closeStores();
    throw error;
  }
}

async function listen(start: () => Promise<string>, config: Config): Promise<string> {
  try {
    return await start();
  } catch (error) {
    const reason = reasonOf(error);
    const what = reason === 'EADDRINUSE' ? 'the port is taken' : reason;
    throw new StartError(`The coordinator cannot listen on ${config.host}:${config.port}: ${what}.`, { cause: error });
  }
}

function logFleet(log: Log, event: FleetEvent): void {
  switch (event.type) {
    case 'joined': {
      const { identity, agentVersion, slots } = event.session.registration;
      const models = event.session.models.map((model) => model.id);
      log.info({ provider: identity.providerId, simulated: identity.simulated, agent: agentVersion, slots, models }, 'provider joined');
      return;
    }
    case 'left': {
      const provider = event.session.registration?.identity.providerId ?? null;
      log.info({ provider, session: event.session.sessionId, ...event.end, message: undefined }, 'provider left');
      return;
    }
    case 'quarantined':
      log.error({ provider: event.providerId, reason: event.reason }, 'provider quarantined');
      return;
    case 'reinstated':
      log.warn({ provider: event.providerId }, 'provider reinstated');
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms).unref();
  });
}
