/** `openTracing` traces jobs with OpenTelemetry, whose packages read their standard environment variables. */
import { withTimeLimit } from '@inference/protocol';
import { type Tracer as OtelTracer, ROOT_CONTEXT, type Span, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import type { SpanExporter } from '@opentelemetry/sdk-trace-base';
import { NO_TRACER, type TraceAttributes, type Tracer, type TraceSpan } from '../inference/job-observer.js';
import type { TracingSettings } from './tracing-settings.js';

interface Tracing {
  readonly tracer: Tracer;
  /** Sends the remaining spans, for at most `ms` milliseconds. */
  close(ms: number): Promise<void>;
}

const SERVICE = 'inference-coordinator';
/** Value of the header `traceparent` (W3C Trace Context, section 3.2): version, trace id, parent id, flags. All zeros are invalid ids. */
const TRACEPARENT = /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})$/;

/** Without settings, nothing is traced and no package is loaded. `onError` receives export errors. */
export async function openTracing(settings: TracingSettings | null, onError: (error: unknown) => void): Promise<Tracing> {
  if (settings === null) return { tracer: NO_TRACER, close: async () => {} };
  const [{ BasicTracerProvider, BatchSpanProcessor }, { defaultResource, detectResources, envDetector, resourceFromAttributes }, exporter] =
    await Promise.all([import('@opentelemetry/sdk-trace-base'), import('@opentelemetry/resources'), exporterFor(settings)]);
  const named = resourceFromAttributes({ 'service.name': SERVICE }).merge(detectResources({ detectors: [envDetector] }));
  const provider = new BasicTracerProvider({
    resource: defaultResource().merge(named),
    spanProcessors: [new BatchSpanProcessor(reportExportErrors(exporter, onError))],
  });
  return {
    tracer: tracerOn(provider.getTracer(SERVICE)),
    close: async (ms) => void (await withTimeLimit(provider.shutdown().catch(onError), ms)),
  };
}

async function exporterFor({ protocol }: TracingSettings): Promise<SpanExporter> {
  switch (protocol) {
    case 'http/protobuf':
      return new (await import('@opentelemetry/exporter-trace-otlp-proto')).OTLPTraceExporter();
    case 'http/json':
      return new (await import('@opentelemetry/exporter-trace-otlp-http')).OTLPTraceExporter();
    default:
      return protocol satisfies never;
  }
}

/** Reports failed exports, which the OpenTelemetry packages ignore. */
function reportExportErrors(exporter: SpanExporter, onError: (error: unknown) => void): SpanExporter {
  return {
    export: (spans, done) =>
      exporter.export(spans, (result) => {
        if (result.error !== undefined) onError(result.error);
        done(result);
      }),
    shutdown: () => exporter.shutdown(),
    ...(exporter.forceFlush === undefined ? {} : { forceFlush: () => exporter.forceFlush?.() ?? Promise.resolve() }),
  };
}

function tracerOn(tracer: OtelTracer): Tracer {
  return {
    start: (name, attributes, traceparent) => {
      const [, traceId, spanId, flags] = TRACEPARENT.exec(traceparent ?? '') ?? [];
      const parent =
        traceId === undefined || spanId === undefined
          ? ROOT_CONTEXT
          : trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags: Number.parseInt(flags ?? '0', 16), isRemote: true });
      return spanOn(tracer, tracer.startSpan(name, { kind: SpanKind.SERVER, attributes }, parent));
    },
  };
}

function spanOn(tracer: OtelTracer, span: Span): TraceSpan {
  return {
    child: (name, attributes: TraceAttributes = {}) =>
      spanOn(tracer, tracer.startSpan(name, { attributes }, trace.setSpan(ROOT_CONTEXT, span))),
    end: (attributes = {}, error = null) => {
      span.setAttributes(attributes);
      if (error !== null) span.setStatus({ code: SpanStatusCode.ERROR, message: error });
      span.end();
    },
  };
}
