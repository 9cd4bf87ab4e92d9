/**
 * `GET /admin/v1/earnings/concentration`: owners with a large share of earnings from a single paying account. Such an owner may be paying
 * itself, so operators read the list before they approve a withdrawal.
 */
import { type AdminEarningsConcentration, AdminEarningsConcentrationSchema } from '@inference/formats';
import type { FastifyInstance } from 'fastify';
import Type from 'typebox';
import { type AccountName, earningsConcentration } from '../../database/earnings-repository.js';
import { RETAINED_PAYER_DAYS } from '../../database/ledger/activity.js';
import type { Database } from '../../database/tables.js';
import { DAY_MS } from '../../time-units.js';
import { queryReader } from '../parameters/query.js';
import { dayText } from '../parameters/times.js';

const MAX_DAYS = RETAINED_PAYER_DAYS - 1;
const MAX_ROWS = 200;
const boundedInteger = (min: number, max: number, fallback: number) =>
  Type.Integer({ minimum: min, maximum: max, default: fallback, description: `a whole number from ${min} to ${max}` });

const ConcentrationQuerySchema = Type.Object({
  days: boundedInteger(1, MAX_DAYS, 30),
  min_share_percent: boundedInteger(1, 100, 50),
  /** Default: one dollar. Shares of smaller amounts say little. */
  min_micro_usd: boundedInteger(0, 10_000_000_000_000, 1_000_000),
  limit: boundedInteger(1, MAX_ROWS, 50),
});
const readQuery = queryReader(ConcentrationQuerySchema);

export function addEarningsConcentration(
  server: FastifyInstance,
  { database, now }: { readonly database: Database; readonly now: () => number },
): void {
  const schema = { querystring: ConcentrationQuerySchema, response: { 200: AdminEarningsConcentrationSchema } };
  server.get(
    '/admin/v1/earnings/concentration',
    { onRequest: server.guards.admin, schema },
    async (request): Promise<AdminEarningsConcentration> => {
      const { days, min_share_percent, min_micro_usd, limit } = readQuery(request.url);
      const to = Math.floor(now() / DAY_MS);
      const from = to - days + 1;
      const rows = await earningsConcentration(database, { from, minSharePercent: min_share_percent, minEarned: min_micro_usd, limit });
      return {
        from: dayText(from),
        to: dayText(to),
        min_share_percent,
        min_micro_usd,
        data: rows.map((row) => ({
          owner: row.owner === null ? null : nameBody(row.owner),
          provider_id: row.providerId,
          payer: nameBody(row.payer),
          earned_micro_usd: row.earned,
          owner_earned_micro_usd: row.ownerEarned,
          payer_paid_micro_usd: row.payerPaid,
          owner_share_percent: percentOf(row.earned, row.ownerEarned),
          payer_share_percent: percentOf(row.earned, row.payerPaid),
        })),
      };
    },
  );
}

function nameBody({ id, name, email }: AccountName) {
  return { id, name, email };
}

function percentOf(part: number, whole: number): number {
  return Number((BigInt(part) * 100n) / BigInt(whole));
}
