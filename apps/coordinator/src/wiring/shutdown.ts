/** `shutDown` lets running jobs end for a while, then closes connections and all resources. */
import type { FastifyInstance } from 'fastify';
import type { Billing } from '../inference/settlement/billing.js';
import type { ProviderRegistry } from '../providers/provider-registry.js';
import type { ResponseDrain } from '../routes/plugins/connections/response-drain.js';
import type { InferenceServices } from './inference.js';
import type { StartContext } from './start-context.js';

/** Time after the grace period for last responses and closing handshakes, and then for settlements. */
const FLUSH_MS = 750;

interface ShutdownDeps {
  readonly server: FastifyInstance;
  readonly responses: ResponseDrain;
  readonly providers: ProviderRegistry;
  readonly inference: InferenceServices;
  readonly billing: Billing;
}

/** Time for load balancers to send new requests to other coordinators. */
const HANDOVER_MS = 5000;

/** `graceMs` is the time for running jobs. `abort` ends it early. */
export async function shutDown(context: StartContext, deps: ShutdownDeps, graceMs: number, abort?: AbortSignal): Promise<void> {
  const { server, responses, providers, billing } = deps;
  const { runner, requestQueue, imageSupply, cluster } = deps.inference;
  const deadline = performance.now() + graceMs;
  context.draining.abort();
  cluster.announceDrain();
  providers.drain(() => runner.drainDemands());
  // New requests are accepted until load balancers have noticed, and placed on providers of other coordinators.
  const hasPeers = cluster.peerCount() > 0;
  if (hasPeers) await pause(Math.min(HANDOVER_MS, graceMs / 2), abort);
  context.refusing.abort();
  if (hasPeers) {
    // The client's next request would be refused on an open connection, but may reach another coordinator on a new one.
    responses.endConnections();
    // Waits, because Node.js also closes connections as idle whose responses the client has not read yet.
    void responses.whenDrained().then(() => server.server.closeIdleConnections());
  }
  requestQueue.drain();
  imageSupply.close();
  // When a job has ended, its client may still be reading the response.
  const allDelivered = Promise.all([runner.whenIdle().then(() => responses.whenDrained()), cluster.whenPeersServed()]);
  await Promise.race([allDelivered, pause(Math.max(0, deadline - performance.now()), abort)]);
  const closed = server.close();
  requestQueue.close();
  runner.stop();
  providers.closeSessions();
  await Promise.race([Promise.allSettled([closed, runner.whenIdle()]), pause(FLUSH_MS)]);
  const { disposal } = context;
  disposal.defer(() => closed);
  disposal.defer(() => providers.close());
  disposal.defer(() => server.server.closeAllConnections());
  disposal.defer(() => billing.close(FLUSH_MS));
  await disposal.close();
}

function pause(ms: number, abort?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (abort?.aborted) return resolve();
    const timer = setTimeout(resolve, ms).unref();
    abort?.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
