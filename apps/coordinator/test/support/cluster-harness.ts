/** Test harness with two coordinators: clients use `near`, and all providers connect to `far`. */
import { freshPostgres } from './databases.js';
import { type Harness, type HarnessOptions, startCoordinator, until } from './harness.js';
import { type NatsServer, startNats } from './nats-server.js';

export interface TwoCoordinators {
  /** The clients' coordinator, without providers. */
  readonly near: Harness;
  /** The coordinator with the providers' connections. */
  readonly far: Harness;
  readonly nats: NatsServer;
  close(): Promise<void>;
}

export async function startTwoCoordinators(options: HarnessOptions = {}): Promise<TwoCoordinators> {
  const database = await databaseFor(options);
  const nats = await startNats().catch((cause: unknown) => {
    throw new Error('These tests need nats-server on the PATH: apt-get install nats-server, or brew install nats-server.', { cause });
  });
  const start = (id: string, dataDir?: string): Promise<Harness> =>
    startCoordinator({
      ...options,
      config: {
        ...withoutDataDir(options.config),
        ...(dataDir === undefined ? {} : { dataDir }),
        databaseUrl: database.url,
        cluster: { id, servers: [nats.url], nkeySeed: null, certificateAuthorityFile: null },
      },
    });
  const near = await start('near', options.config?.dataDir);
  databaseByDataDir.set(near.dataDir, database);
  const far = await start('far');
  await until(() => near.app.cluster.peerCount() === 1 && far.app.cluster.peerCount() === 1);
  return {
    near,
    far,
    nats,
    async close() {
      await Promise.all([near.close(), far.close()]);
      await nats.close();
      databaseByDataDir.delete(near.dataDir);
      await database.remove();
    },
  };
}

export async function startClusterHarness(options: HarnessOptions): Promise<Harness> {
  const { near, far, nats, close } = await startTwoCoordinators(options);
  return {
    ...near,
    app: {
      ...near.app,
      // Tests read reputation and sessions, which the owning coordinator holds.
      providers: far.app.providers,
      // The clients' coordinator closes first, so that its jobs end as without a cluster.
      async close(...grace) {
        await near.app.close(...grace);
        await far.app.close(0);
        await nats.close();
      },
    },
    async provider(providerOptions = {}) {
      const provider = await far.provider(providerOptions);
      const models = provider.received.some(({ type }) => type === 'registered') ? (provider.options.models ?? []) : [];
      const isKnown = (model: string): boolean =>
        near.app.cluster.servingAtPeers(model) === (far.app.providers.models.poolNow(model)?.serving ?? 0);
      await until(() => models.every(isKnown));
      return provider;
    },
    get log() {
      return [...near.log, ...far.log];
    },
    jobLines: () => [...near.jobLines(), ...far.jobLines()],
    close,
  };
}

interface ClusterDatabase {
  readonly url: string;
  remove(): Promise<void>;
}

/** For restarts on the same data. Key: data directory of the clients' coordinator. */
const databaseByDataDir = new Map<string, ClusterDatabase>();

async function databaseFor({ config = {} }: HarnessOptions): Promise<ClusterDatabase> {
  if (typeof config.databaseUrl === 'string') return { url: config.databaseUrl, remove: async () => {} };
  const earlier = databaseByDataDir.get(config.dataDir ?? '');
  if (earlier !== undefined) return earlier;
  const { target, remove } = await freshPostgres();
  if (!('url' in target)) throw new Error('the database has no address');
  return { url: target.url, remove };
}

function withoutDataDir({ dataDir: _, ...config }: NonNullable<HarnessOptions['config']> = {}): NonNullable<HarnessOptions['config']> {
  return config;
}
