/** `readTracing` reads from OpenTelemetry's environment variables whether and how traces are exported. */
import { StartupError } from '../config/startup-error.js';

export interface TracingSettings {
  readonly protocol: (typeof PROTOCOLS)[number];
}

const PROTOCOLS = ['http/protobuf', 'http/json'] as const;

/** Null without a configured exporter or endpoint. Throws {@link StartupError} for unsupported settings. */
export function readTracing(env: Readonly<Record<string, string | undefined>>): TracingSettings | null {
  const value = (...names: readonly string[]): string => names.map((name) => env[name] ?? '').find((text) => text !== '') ?? '';
  if (value('OTEL_SDK_DISABLED').toLowerCase() === 'true') return null;
  const exporter = value('OTEL_TRACES_EXPORTER');
  const address = value('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'OTEL_EXPORTER_OTLP_ENDPOINT');
  if (exporter === 'none' || (exporter === '' && address === '')) return null;
  if (exporter !== '' && exporter !== 'otlp') throw new StartupError(`OTEL_TRACES_EXPORTER must be otlp or none, not "${exporter}".`);
  const requested = value('OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'OTEL_EXPORTER_OTLP_PROTOCOL') || 'http/protobuf';
  const protocol = PROTOCOLS.find((known) => known === requested);
  if (protocol === undefined) throw new StartupError(`OTEL_EXPORTER_OTLP_PROTOCOL must be ${PROTOCOLS.join(' or ')}, not "${requested}".`);
  return { protocol };
}
