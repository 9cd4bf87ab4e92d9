/** `openTelemetry` creates metrics and tracing. `serveMetrics` serves the metrics on a separate port. */
import type { Config } from '../config/config.js';
import { errorReason, StartupError } from '../config/startup-error.js';
import type { Tracer } from '../inference/job-observer.js';
import { errorFacts } from '../log.js';
import { Metrics } from '../telemetry/metrics.js';
import { type MetricsServer, startMetricsServer } from '../telemetry/metrics-server.js';
import { openTracing } from '../telemetry/tracing.js';
import type { StartContext } from './start-context.js';

const TRACE_FLUSH_MS = 750;

export interface Telemetry {
  readonly metrics: Metrics;
  readonly tracer: Tracer;
}

export async function openTelemetry({ config, log, now, disposal }: StartContext): Promise<Telemetry> {
  const tracing = await openTracing(config.tracing, (error) => log.warn({ error: errorFacts(error) }, 'traces were not sent'));
  disposal.defer(() => tracing.close(TRACE_FLUSH_MS));
  return { metrics: new Metrics(now), tracer: tracing.tracer };
}

/** Returns the port. Null if the configuration has no address for the metrics. */
export async function serveMetrics({ config, disposal }: StartContext, metrics: Metrics): Promise<number | null> {
  if (config.metrics === null) return null;
  const server = await listen(metrics, config.metrics);
  disposal.defer(() => server.close());
  return server.port;
}

async function listen(metrics: Metrics, { host, port }: NonNullable<Config['metrics']>): Promise<MetricsServer> {
  try {
    return await startMetricsServer(metrics, host, port);
  } catch (error) {
    throw new StartupError(`Metrics cannot be served at ${host}:${port}: ${errorReason(error)}.`, { cause: error });
  }
}
