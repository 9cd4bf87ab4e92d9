/**
 * `GET /admin/v1/health`: state of the coordinators, the providers (`fleet`), the database and the ledger, for the operators' console page.
 * Database queries are cached, so that polling is cheap.
 */
import { type AdminHealth, AdminHealthSchema } from '@inference/formats';
import type { FastifyInstance } from 'fastify';
import Type, { type Static } from 'typebox';
import type { NetworkViews } from '../../cluster/views.js';
import type { DatabaseState } from '../../database/connection/database-state.js';
import type { Dialect } from '../../database/connection/dialect.js';
import type { LedgerSummary } from '../../database/ledger/ledger-summary.js';
import type { QuarantineRepository } from '../../database/providers/quarantine-repository.js';
import type { ProviderRegistry } from '../../providers/provider-registry.js';
import type { RecentCounts } from '../../telemetry/recent-counts.js';
import { isoTime } from '../parameters/times.js';

export interface AdminHealthRoutes {
  readonly version: string;
  readonly startedAt: number;
  readonly isDraining: () => boolean;
  readonly dialect: Dialect;
  /** Never rejects. */
  readonly database: () => Promise<DatabaseState>;
  /** Rejects if the database fails. */
  readonly ledger: () => Promise<LedgerSummary>;
  readonly registry: ProviderRegistry;
  /** Name of this coordinator in its cluster, if any. */
  readonly coordinatorId: string | null;
  readonly views: NetworkViews;
  readonly quarantines: Pick<QuarantineRepository, 'all'>;
  readonly queues: () => AdminHealth['queues'];
  readonly recentJobs: RecentCounts;
  readonly recentProblems: RecentCounts;
  readonly now: () => number;
  readonly onFailure: (error: unknown) => void;
}

/** Maximum age of the state of database and ledger, in milliseconds. */
const CACHE_MS = 5000;

type FromDatabase = Pick<AdminHealth, 'database' | 'ledger'>;

export function addAdminHealth(server: FastifyInstance, facts: AdminHealthRoutes): void {
  const readParts = facts.views.define('health', { query: Type.Null(), part: HealthPartSchema }, () => healthPart(facts));
  let latest: { readonly at: number; readonly answer: Promise<FromDatabase> } | null = null;
  server.get(
    '/admin/v1/health',
    { onRequest: server.guards.admin, schema: { response: { 200: AdminHealthSchema } } },
    async (_request, reply): Promise<AdminHealth> => {
      const now = facts.now();
      if (latest === null || now - latest.at >= CACHE_MS || now < latest.at) latest = { at: now, answer: readDatabaseHealth(facts) };
      const { database, ledger } = await latest.answer;
      const parts = await readParts(null);
      const draining = facts.isDraining();
      reply.header('cache-control', 'no-store');
      return {
        ready: database.state === 'ok' && !draining,
        reason: draining ? 'draining' : database.state === 'ok' ? null : `database_${database.state}`,
        version: facts.version,
        node_version: process.version,
        started_at: isoTime(facts.startedAt),
        server_time: isoTime(facts.now()),
        memory_bytes: process.memoryUsage.rss(),
        database,
        queues: sums(parts.map(({ coordinator }) => coordinator.queues)),
        fleet: networkCounts(parts),
        ledger,
        recent: {
          minutes: facts.recentJobs.minutes,
          jobs: codeCounts(parts.map(({ jobs }) => jobs)),
          problems: codeCounts(parts.map(({ problems }) => problems)),
        },
        ...(facts.coordinatorId === null ? {} : { coordinators: parts.map(({ coordinator }) => coordinator) }),
      };
    },
  );
}

async function readDatabaseHealth(facts: AdminHealthRoutes): Promise<FromDatabase> {
  const began = performance.now();
  const state = await facts.database();
  const database = { kind: facts.dialect, state, answer_ms: Math.round(performance.now() - began) };
  if (state !== 'ok') return { database, ledger: null };
  try {
    return { database, ledger: ledgerBody(await facts.ledger(), facts.now()) };
  } catch (error) {
    facts.onFailure(error);
    return { database, ledger: null };
  }
}

function ledgerBody(summary: LedgerSummary, now: number): NonNullable<AdminHealth['ledger']> {
  return {
    checked_at: isoTime(now),
    owed_micro_usd: summary.owed,
    held_micro_usd: summary.held,
    fees_micro_usd: summary.fees,
    requested_withdrawals_micro_usd: summary.requestedWithdrawals,
    accounts: summary.accounts,
    running_holds: summary.runningHolds,
    problems: [...summary.problems],
  };
}

const { properties } = AdminHealthSchema;
/** Part of the response that each coordinator contributes. `models` are ids, because several coordinators may serve the same model. */
const HealthPartSchema = Type.Object({
  coordinator: properties.coordinators.items,
  models: Type.Array(Type.String({ maxLength: 256 })),
  jobs: properties.recent.properties.jobs,
  problems: properties.recent.properties.problems,
});
type HealthPart = Static<typeof HealthPartSchema>;

function healthPart(facts: AdminHealthRoutes): HealthPart {
  return {
    coordinator: {
      id: facts.coordinatorId ?? '',
      version: facts.version,
      started_at: isoTime(facts.startedAt),
      server_time: isoTime(facts.now()),
      draining: facts.isDraining(),
      memory_bytes: process.memoryUsage.rss(),
      queues: facts.queues(),
      fleet: providerCounts(facts),
    },
    models: facts.registry.models.list().map(({ offer }) => offer.id),
    jobs: [...facts.recentJobs.read()],
    problems: [...facts.recentProblems.read()],
  };
}

/** Counts of the network. Coordinators share quarantines (`held`) and restrictions (`restrained`), so these are not summed. */
function networkCounts(parts: readonly HealthPart[]): AdminHealth['fleet'] {
  const fleets = parts.map(({ coordinator }) => coordinator.fleet);
  return {
    ...sums(fleets),
    held: Math.max(...fleets.map(({ held }) => held)),
    restrained: Math.max(...fleets.map(({ restrained }) => restrained)),
    models: new Set(parts.flatMap(({ models }) => models)).size,
  };
}

function sums<Counts extends Record<string, number>>(parts: readonly Counts[]): Counts {
  const [first, ...others] = parts;
  if (first === undefined) throw new Error('the own part is missing');
  const total: Record<string, number> = { ...first };
  for (const part of others) for (const [name, count] of Object.entries(part)) total[name] = (total[name] ?? 0) + count;
  return total as Counts;
}

type CodeCounts = HealthPart['jobs'];

function codeCounts(parts: readonly CodeCounts[]): CodeCounts {
  const counts = new Map<string, number>();
  for (const { code, count } of parts.flat()) counts.set(code, (counts.get(code) ?? 0) + count);
  return [...counts].map(([code, count]) => ({ code, count }));
}

function providerCounts({ registry, quarantines }: AdminHealthRoutes): AdminHealth['fleet'] {
  let [providers, routable, slots, usedSlots] = [0, 0, 0, 0];
  for (const provider of registry.snapshots()) {
    providers++;
    if (provider.status === 'online') routable++;
    slots += provider.registration.slots;
    usedSlots += provider.usedSlots;
  }
  return {
    connections: registry.connections,
    providers,
    routable,
    held: quarantines.all.size,
    restrained: [...registry.reputations.restricted()].length,
    slots,
    used_slots: usedSlots,
    models: registry.models.list().length,
  };
}
