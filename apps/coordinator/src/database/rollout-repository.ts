/**
 * `RolloutRepository`: stores rollouts, which offer a new agent version to machines in stages.
 *
 * Also stores the machines of each version (`updated`, or `control` for comparison), and each coordinator's capacity (`fleet`).
 */
import type { Expression, ExpressionBuilder, Selectable, SqlBool } from 'kysely';
import { locked } from './connection/row-lock.js';
import { runExclusively } from './periodic-work.js';
import type { Database, Tables } from './tables.js';

export type RolloutRow = Selectable<Tables['rollouts']>;
export type RolloutMachineRow = Selectable<Tables['rollout_machines']>;

const MAX_ROLLOUTS = 1000;
/** Number of newest versions whose machines stay stored. */
const MAX_VERSIONS_WITH_MACHINES = 5;
const POLICY = 'rollouts';
/** Rows per statement, because databases limit the number of parameters. `writeObserved` may exceed it by the rows of one provider. */
const ROWS_PER_STATEMENT = 100;
const IDS_PER_STATEMENT = 1000;
/** Time without a report after which a coordinator is considered stopped. */
const FLEET_MS = 180_000;

/**
 * Selects the rows that matter for an offer: the asking machine, machines that may not serve because of the update, and recent controls.
 *
 * Times in milliseconds since 1970.
 */
export interface RelevantMachines {
  readonly providerId: string;
  /** Chip family of the selected controls. */
  readonly chipFamily: string;
  readonly controlsSince: number;
  /** Machines offered the version since then are selected, unless they already run it. */
  readonly offeredSince: number;
  /** Machines offered the version after `missingSince` and not seen after `connectedSince` are selected, because they may be offline. */
  readonly missingSince: number;
  readonly connectedSince: number;
}

export class RolloutRepository {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async rollouts(): Promise<RolloutRow[]> {
    return this.#database.selectFrom('rollouts').selectAll().orderBy('started_at', 'desc').limit(MAX_ROLLOUTS).execute();
  }

  /** Policy as JSON; null: the operator set none. */
  async policy(): Promise<string | null> {
    const row = await this.#database.selectFrom('rollout_policies').select('policy').where('name', '=', POLICY).executeTakeFirst();
    return row?.policy ?? null;
  }

  async putPolicy(policy: string, by: string, now: number): Promise<void> {
    await this.#database
      .insertInto('rollout_policies')
      .values({ name: POLICY, policy, changed_at: now, changed_by: by })
      .onConflict((conflict) => conflict.column('name').doUpdateSet({ policy, changed_at: now, changed_by: by }))
      .execute();
  }

  /** Adds the rollouts that `decide` returns, given the stored ones. Does nothing while another coordinator runs this. */
  async add(decide: (known: readonly RolloutRow[]) => readonly RolloutRow[]): Promise<void> {
    await runExclusively(this.#database, 'add rollouts', async () => {
      const rows = decide(await this.rollouts());
      if (rows.length === 0) return;
      await this.#database
        .insertInto('rollouts')
        .values([...rows])
        .onConflict((conflict) => conflict.column('version').doNothing())
        .execute();
    });
  }

  /** Applies the change that `decide` returns. Null: no such rollout, or `decide` returned null. */
  async change(version: string, decide: (row: RolloutRow) => Partial<RolloutRow> | null): Promise<RolloutRow | null> {
    return this.#database.transaction().execute(async (transaction) => {
      const row = await this.#locked(transaction, version);
      const change = row === undefined ? null : decide(row);
      if (row === undefined || change === null) return null;
      await transaction.updateTable('rollouts').set(change).where('version', '=', version).execute();
      return { ...row, ...change };
    });
  }

  /** Updated machines and controls of a version. */
  async machines(version: string): Promise<RolloutMachineRow[]> {
    return this.#database.selectFrom('rollout_machines').selectAll().where('version', '=', version).execute();
  }

  /** Row of a machine that was offered the version or runs it; null: none. */
  async offeredMachine(version: string, providerId: string): Promise<RolloutMachineRow | null> {
    const row = await this.#database
      .selectFrom('rollout_machines')
      .selectAll()
      .where('version', '=', version)
      .where('provider_id', '=', providerId)
      .where('part', '=', 'updated')
      .executeTakeFirst();
    return row ?? null;
  }

  /**
   * Records an offer or a failed trial while the rollout is locked, so that two coordinators never reserve the same capacity.
   *
   * `decide` gets the `relevant` machines only. Undefined: no such rollout.
   */
  async changeMachines<Result>(
    version: string,
    relevant: RelevantMachines,
    decide: (
      row: RolloutRow,
      machines: readonly RolloutMachineRow[],
    ) => { readonly result: Result; readonly rows: readonly RolloutMachineRow[] },
  ): Promise<Result | undefined> {
    return this.#database.transaction().execute(async (transaction) => {
      const row = await this.#locked(transaction, version);
      if (row === undefined) return undefined;
      const machines = await transaction
        .selectFrom('rollout_machines')
        .selectAll()
        .where('version', '=', version)
        .where((where) => isRelevant(where, relevant))
        .execute();
      const { result, rows } = decide(row, machines);
      await insertMachines(transaction, rows);
      const ids = rows.filter(({ part }) => part === 'updated').map(({ provider_id }) => provider_id);
      if (ids.length > 0)
        await transaction
          .deleteFrom('rollout_machines')
          .where('version', '=', version)
          .where('part', '=', 'control')
          .where('provider_id', 'in', ids)
          .execute();
      return result;
    });
  }

  /**
   * Writes observations of this coordinator: `changed` rows, and `seen` machines of which only the time has changed.
   *
   * Not in a transaction, which would delay other writes on SQLite. So an error may leave a part of the rows written.
   *
   * @param onStored Called with provider ids once all `changed` rows of these providers are written.
   */
  async observe(
    changed: readonly RolloutMachineRow[],
    seen: { readonly version: string; readonly ids: readonly string[]; readonly at: number }[],
    onStored: (providerIds: readonly string[]) => void = () => {},
  ): Promise<void> {
    await writeObserved(this.#database, changed, onStored);
    for (const { version, ids, at } of seen) {
      for (let start = 0; start < ids.length; start += IDS_PER_STATEMENT) {
        await this.#database
          .updateTable('rollout_machines')
          .set({ seen_at: at })
          .where('version', '=', version)
          .where('provider_id', 'in', ids.slice(start, start + IDS_PER_STATEMENT))
          .execute();
      }
    }
  }

  /** Reports the capacity at this coordinator, as JSON. */
  async putFleet(coordinator: string, fleet: string, now: number): Promise<void> {
    await this.#database
      .insertInto('rollout_fleets')
      .values({ coordinator, seen_at: now, fleet })
      .onConflict((conflict) => conflict.column('coordinator').doUpdateSet({ seen_at: now, fleet }))
      .execute();
  }

  async fleets(now: number): Promise<string[]> {
    const rows = await this.#database
      .selectFrom('rollout_fleets')
      .select('fleet')
      .where('seen_at', '>', now - FLEET_MS)
      .execute();
    return rows.map(({ fleet }) => fleet);
  }

  async removeFleet(coordinator: string): Promise<void> {
    await this.#database.deleteFrom('rollout_fleets').where('coordinator', '=', coordinator).execute();
  }

  /** Removes machines of older versions without an active rollout, and capacities of coordinators that have stopped. */
  async prune(now: number): Promise<void> {
    const recentRollouts = (await this.rollouts()).filter(({ state }, index) => index < MAX_VERSIONS_WITH_MACHINES || state === 'active');
    const versions = recentRollouts.map(({ version }) => version);
    if (versions.length > 0) await this.#database.deleteFrom('rollout_machines').where('version', 'not in', versions).execute();
    await this.#database
      .deleteFrom('rollout_fleets')
      // Later than `fleets` ignores them, in case clocks differ.
      .where('seen_at', '<', now - 10 * FLEET_MS)
      .execute();
  }

  #locked(transaction: Database, version: string): Promise<RolloutRow | undefined> {
    return locked(transaction, transaction.selectFrom('rollouts').selectAll().where('version', '=', version), 'update').executeTakeFirst();
  }
}

/** Condition for {@link RelevantMachines}. Selects few of thousands of rows, because most machines run the version and are connected. */
function isRelevant({ and, eb, or }: ExpressionBuilder<Tables, 'rollout_machines'>, relevant: RelevantMachines): Expression<SqlBool> {
  const isOffer = and([eb('since', '>', relevant.offeredSince), eb('on_version_at', 'is', null)]);
  const mayBeOffline = and([eb('since', '>', relevant.missingSince), eb('seen_at', '<=', relevant.connectedSince)]);
  return or([
    eb('provider_id', '=', relevant.providerId),
    and([eb('part', '=', 'updated'), or([isOffer, mayBeOffline, eb('blocked_at', 'is not', null)])]),
    and([eb('part', '=', 'control'), eb('chip_family', '=', relevant.chipFamily), eb('since', '>', relevant.controlsSince)]),
  ]);
}

/** Updates the observed columns, unless a later offer has replaced the row. Sorted, so that coordinators do not deadlock. */
async function writeObserved(
  database: Database,
  changed: readonly RolloutMachineRow[],
  onStored: (providerIds: readonly string[]) => void,
): Promise<void> {
  const rows = [...changed].sort((a, b) => (a.provider_id < b.provider_id ? -1 : a.provider_id > b.provider_id ? 1 : 0));
  for (let start = 0, end = 0; start < rows.length; start = end) {
    end = Math.min(start + ROWS_PER_STATEMENT, rows.length);
    // One statement writes all rows of a provider, because the caller restores their counts together if it fails.
    while (rows[end]?.provider_id === rows[end - 1]?.provider_id) end++;
    const written = rows.slice(start, end);
    await database
      .insertInto('rollout_machines')
      .values(written)
      .onConflict((conflict) =>
        conflict
          .columns(['version', 'provider_id', 'part'])
          .doUpdateSet((set) => ({
            seen_at: set.ref('excluded.seen_at'),
            on_version_at: set.ref('excluded.on_version_at'),
            // A failure that was reported meanwhile stays, unless the machine now runs the version.
            failed_at: set.case().when('excluded.on_version_at', 'is', null).then(set.ref('rollout_machines.failed_at')).else(null).end(),
            blocked_at: set.ref('excluded.blocked_at'),
            restricted_at: set.ref('excluded.restricted_at'),
            trust: set.ref('excluded.trust'),
            attempts: set.ref('excluded.attempts'),
            failures: set.ref('excluded.failures'),
            speed_ratio: set.ref('excluded.speed_ratio'),
          }))
          .whereRef('rollout_machines.since', '=', 'excluded.since'),
      )
      .execute();
    onStored(written.map(({ provider_id }) => provider_id));
  }
}

async function insertMachines(transaction: Database, rows: readonly RolloutMachineRow[]): Promise<void> {
  for (let start = 0; start < rows.length; start += ROWS_PER_STATEMENT) {
    await transaction
      .insertInto('rollout_machines')
      .values(rows.slice(start, start + ROWS_PER_STATEMENT))
      .onConflict((conflict) =>
        conflict.columns(['version', 'provider_id', 'part']).doUpdateSet((set) => ({
          chip_family: set.ref('excluded.chip_family'),
          models: set.ref('excluded.models'),
          slots: set.ref('excluded.slots'),
          since: set.ref('excluded.since'),
          seen_at: set.ref('excluded.seen_at'),
          on_version_at: set.ref('excluded.on_version_at'),
          failed_at: set.ref('excluded.failed_at'),
          blocked_at: set.ref('excluded.blocked_at'),
          restricted_at: set.ref('excluded.restricted_at'),
          trust_before: set.ref('excluded.trust_before'),
          trust: set.ref('excluded.trust'),
          attempts: set.ref('excluded.attempts'),
          failures: set.ref('excluded.failures'),
          speed_model: set.ref('excluded.speed_model'),
          speed_before: set.ref('excluded.speed_before'),
          speed_ratio: set.ref('excluded.speed_ratio'),
          owner: set.ref('excluded.owner'),
          is_volunteer: set.ref('excluded.is_volunteer'),
        })),
      )
      .execute();
  }
}
