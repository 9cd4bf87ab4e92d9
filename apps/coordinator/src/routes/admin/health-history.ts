/** `GET /admin/v1/health/history`: time series of health figures over the last hour, day or week, for all coordinators together. */
import { type AdminHealthHistory, AdminHealthHistorySchema, HEALTH_RANGES, HEALTH_RESOLUTIONS, RequestError } from '@inference/formats';
import { lazyValidator } from '@inference/protocol';
import type { FastifyInstance } from 'fastify';
import Type from 'typebox';
import type { HealthHistoryRepository, HealthSlotSeconds } from '../../database/health-history-repository.js';
import { HealthFiguresSchema } from '../../telemetry/history/health-figures.js';
import { healthPoints } from '../../telemetry/history/health-points.js';
import { queryReader } from '../parameters/query.js';

type Range = AdminHealthHistory['range'];
type Resolution = AdminHealthHistory['resolution'];

const RANGE_MS: Readonly<Record<Range, number>> = { '1h': 3_600_000, '24h': 86_400_000, '7d': 7 * 86_400_000 };
const SLOT_SECONDS: Readonly<Record<Resolution, HealthSlotSeconds>> = { '1m': 60, '10m': 600, '1h': 3600 };
/** Allowed resolutions of each range, the default first. Finer data is not stored long enough for longer ranges. */
const RESOLUTIONS: Readonly<Record<Range, readonly Resolution[]>> = { '1h': ['1m', '10m'], '24h': ['10m', '1h'], '7d': ['1h'] };

const HistoryQuerySchema = Type.Object({
  range: Type.Enum([...HEALTH_RANGES], { default: '1h', description: `one of ${HEALTH_RANGES.join(', ')}` }),
  resolution: Type.Optional(Type.Enum([...HEALTH_RESOLUTIONS], { description: `one of ${HEALTH_RESOLUTIONS.join(', ')}` })),
});
const readQuery = queryReader(HistoryQuerySchema);
const isFigures = lazyValidator(HealthFiguresSchema);

export interface HealthHistoryRoutes {
  readonly history: Pick<HealthHistoryRepository, 'read'>;
  readonly now: () => number;
}

export function addHealthHistory(server: FastifyInstance, { history, now }: HealthHistoryRoutes): void {
  const schema = { querystring: HistoryQuerySchema, response: { 200: AdminHealthHistorySchema } };
  server.get(
    '/admin/v1/health/history',
    { onRequest: server.guards.admin, schema },
    async (request, reply): Promise<AdminHealthHistory> => {
      const { range, resolution: requested } = readQuery(request.url);
      const resolution = resolutionOf(range, requested);
      const seconds = SLOT_SECONDS[resolution];
      const slotMs = seconds * 1000;
      const to = Math.floor(now() / slotMs) * slotMs;
      const from = to - RANGE_MS[range];
      const rows = await history.read(seconds, from, to);
      reply.header('cache-control', 'no-store');
      return { range, resolution, data: healthPoints(rows.flatMap(figuresOf), { from, to, slotMs }) };
    },
  );
}

function resolutionOf(range: Range, requested: Resolution | undefined): Resolution {
  const allowed = RESOLUTIONS[range];
  const resolution = requested ?? allowed[0];
  if (resolution !== undefined && allowed.includes(resolution)) return resolution;
  throw new RequestError('invalid_request', 'resolution', `resolution must be ${allowed.join(' or ')} for the range ${range}.`);
}

/** Parses the stored figures of a row. Skips rows in the form of another version. */
function figuresOf({ slotAt, figures }: { readonly slotAt: number; readonly figures: string }) {
  const value: unknown = JSON.parse(figures);
  return isFigures().Check(value) ? [{ slotAt, figures: value }] : [];
}
