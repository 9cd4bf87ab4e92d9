/** A coordinator for clients without providers of its own: all providers connect to a second coordinator of the same network. */
import { freshPostgres } from './databases.js';
import { type Harness, type HarnessOptions, startCoordinator, until } from './harness.js';
import { type NatsServer, startNats } from './nats-server.js';

export interface TwoCoordinators {
  /** The clients' coordinator, without providers. */
  readonly near: Harness;
  /** Holds the providers' connections. */
  readonly far: Harness;
  readonly nats: NatsServer;
  close(): Promise<void>;
}

export async function startTwoCoordinators(options: HarnessOptions = {}): Promise<TwoCoordinators> {
  const database = await freshPostgres();
  const nats = await startNats();
  const start = (id: string): Promise<Harness> =>
    startCoordinator({
      ...options,
      config: {
        ...options.config,
        databaseUrl: 'url' in database.target ? database.target.url : null,
        cluster: { id, servers: [nats.url], nkeySeed: null, certificateAuthorityFile: null },
      },
    });
  const near = await start('near');
  const far = await start('far');
  await until(() => near.app.cluster.peerCount() === 1 && far.app.cluster.peerCount() === 1);
  return {
    near,
    far,
    nats,
    async close() {
      await near.close();
      await far.close();
      await nats.close();
      await database.remove();
    },
  };
}

export async function startClusterHarness(options: HarnessOptions): Promise<Harness> {
  const { near, far, close } = await startTwoCoordinators(options);
  return {
    ...near,
    // Tests read the providers' reputation and sessions, which their owner holds.
    app: { ...near.app, providers: far.app.providers },
    async provider(providerOptions = {}) {
      const provider = await far.provider(providerOptions);
      const models = provider.options.models ?? [];
      const isKnown = (model: string): boolean =>
        near.app.cluster.servingAtPeers(model) === far.app.providers.models.poolNow(model)?.serving;
      await until(() => models.every(isKnown));
      return provider;
    },
    jobLines: () => [...near.jobLines(), ...far.jobLines()],
    close,
  };
}
