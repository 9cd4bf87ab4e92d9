/**
 * `PriceRepository` stores the prices of models, and caches them for ten seconds.
 *
 * To change a price on all coordinators at the same moment, set a `validFrom` that is further away.
 */
import { randomUUID } from 'node:crypto';
import { withRetries } from '../../database/connection/transaction-retry.js';
import { PeriodicRefresh } from '../../database/periodic-refresh.js';
import type { Database, Tables } from '../../database/tables.js';
import { LedgerError } from '../ledger/ledger-error.js';
import { microUsd } from '../micro-usd.js';
import type { Price, Rates } from './price.js';

/** Model id of the price that applies to all models without their own price. */
export const ANY_MODEL = '*';
/** Maximum rate in micro-USD: a million dollars per million tokens. */
export const MAX_PER_MILLION = 1_000_000_000_000;
/** Maximum micro-USD per image of 1024×1024 pixels: a thousand dollars. */
export const MAX_PER_IMAGE = 1_000_000_000;

interface PriceRepositoryOptions {
  readonly database: Database;
  /** Rates while neither the model nor `*` has a valid price. */
  readonly defaults: Rates;
  readonly now?: () => number;
  readonly refreshMs?: number;
  /** Called after each new price, to notify other coordinators. */
  readonly onWrite?: () => void;
  readonly onError: (error: unknown) => void;
}

export interface NewPrice extends Rates {
  readonly model: string;
  /** Milliseconds since 1970, not in the past. Default: now. */
  readonly validFrom?: number;
}

const REFRESH_MS = 10_000;
const RETRY_MS = 10_000;

export class PriceRepository {
  readonly #database: Database;
  readonly #default: Price;
  readonly #now: () => number;
  readonly #refreshing: PeriodicRefresh;
  readonly #onWrite: () => void;
  /** Current and future prices of each model, latest first. */
  #prices = new Map<string, readonly Price[]>();
  #startedRefreshes = 0;
  /** Number of the refresh that read `#prices`. */
  #storedRefresh = 0;

  /** Loads the prices and starts reloading them. Callers must close the repository. */
  static async open(options: PriceRepositoryOptions): Promise<PriceRepository> {
    const repository = new PriceRepository(options);
    await repository.#refreshing.begin();
    return repository;
  }

  private constructor({ database, defaults, now = Date.now, refreshMs = REFRESH_MS, onError, onWrite = () => {} }: PriceRepositoryOptions) {
    this.#database = database;
    this.#now = now;
    this.#onWrite = onWrite;
    this.#default = { id: 'default', model: ANY_MODEL, validFrom: 0, ...checked(defaults) };
    this.#refreshing = new PeriodicRefresh({ read: () => this.refresh(), everyMs: refreshMs, onError });
  }

  /** Price of the model now: its own, else the price of `*`, else the default rates. */
  current(model: string): Price {
    const now = this.#now();
    return this.#validPrice(model, now) ?? this.#validPrice(ANY_MODEL, now) ?? this.#default;
  }

  /**
   * Sets a price. Without `validFrom`, rates equal to those of the newest price add no version, unless that price is in the future.
   *
   * Throws {@link LedgerError} `invalid` for rates out of range, a bad model id or a time in the past.
   *
   * @param writeMore Further writes in the same transaction. Called again if the transaction is repeated after a transient error.
   */
  async set(price: NewPrice, writeMore?: (transaction: Database) => Promise<void>): Promise<Price> {
    const rates = checked(price);
    const now = this.#now();
    const validFrom = price.validFrom ?? now;
    if (price.model === '' || price.model.length > 256) throw new LedgerError('invalid', 'a price needs a model');
    if (!Number.isSafeInteger(validFrom) || validFrom < now) throw new LedgerError('invalid', 'a price cannot begin in the past');
    const row = { id: randomUUID(), model: price.model, valid_from: validFrom, ...toRow(rates) };
    // Concurrent calls need different versions. SQLite serializes the transactions. On PostgreSQL, a unique key rejects the second call,
    // and `withRetries` repeats its transaction.
    const add = (): Promise<{ stored: Price; isNew: boolean }> =>
      this.#database.transaction().execute(async (transaction) => {
        // Written first, because these writes may wait for a concurrent transaction that adds a price.
        await writeMore?.(transaction);
        const newest = await ordered(transaction).where('model', '=', price.model).limit(1).executeTakeFirst();
        const isSame = newest !== undefined && newest.valid_from <= now && hasRates(newest, rates);
        // If the ids are equal, an earlier try has stored the row, but its commit was reported as failed.
        if (price.validFrom === undefined && isSame) return { stored: toPrice(newest), isNew: newest.id === row.id };
        const { version } = await transaction
          .selectFrom('prices')
          .select((select) => select.fn.max('version').as('version'))
          .where('model', '=', price.model)
          .executeTakeFirstOrThrow();
        await transaction
          .insertInto('prices')
          .values({ ...row, version: (version ?? 0) + 1 })
          .execute();
        return { stored: { id: row.id, model: price.model, validFrom, ...rates }, isNew: true };
      });
    const { stored, isNew } = await withRetries(add, Date.now() + RETRY_MS);
    if (isNew) this.#onWrite();
    // The cache may lack an equal price that another coordinator added.
    if (isNew || this.current(price.model).id !== stored.id) await this.refresh();
    return stored;
  }

  /** All prices that a model (or `*`) ever had, latest first. */
  async history(model: string): Promise<Price[]> {
    const rows = await ordered(this.#database).where('model', '=', model).execute();
    return rows.map(toPrice);
  }

  /** Current prices of `*` and of all models that have a price of their own, now or later. Each is listed under the model's own id. */
  list(): Price[] {
    const models = new Set([...this.#prices.keys(), ANY_MODEL]);
    return [...models].sort().map((model) => ({ ...this.current(model), model }));
  }

  /** Reads the prices again. The result is discarded if a refresh that began later has already stored its own. */
  async refresh(): Promise<void> {
    const order = ++this.#startedRefreshes;
    const prices = new Map<string, Price[]>();
    const now = this.#now();
    for (const row of await ordered(this.#database).execute()) {
      const list = prices.get(row.model) ?? [];
      // Prices before the current one never apply again.
      if (list.some((price) => price.validFrom <= now)) continue;
      list.push(toPrice(row));
      prices.set(row.model, list);
    }
    if (order < this.#storedRefresh) return;
    this.#storedRefresh = order;
    this.#prices = prices;
  }

  /** Reloads prices after another coordinator changed one. Never rejects. */
  changedElsewhere(): Promise<void> {
    return this.#refreshing.refreshNow();
  }

  close(): void {
    this.#refreshing.close();
  }

  #validPrice(model: string, now: number): Price | undefined {
    return this.#prices.get(model)?.find((price) => price.validFrom <= now);
  }
}

/** All prices, latest first. */
function ordered(database: Database) {
  return database.selectFrom('prices').selectAll().orderBy('valid_from', 'desc').orderBy('version', 'desc');
}

function hasRates(row: Tables['prices'], rates: Rates): boolean {
  const wanted = toRow(rates);
  return (
    row.prompt_per_million === wanted.prompt_per_million &&
    row.cached_per_million === wanted.cached_per_million &&
    row.completion_per_million === wanted.completion_per_million &&
    row.per_image === wanted.per_image
  );
}

function checked(rates: Rates): Rates {
  const within = (value: number, max: number): number => {
    if (Number.isSafeInteger(value) && value >= 0 && value <= max) return value;
    throw new LedgerError('invalid', `a price must be a whole number of micro-USD from 0 to ${max}`);
  };
  const { promptPerMillion, cachedPerMillion = null } = rates;
  if (cachedPerMillion !== null && cachedPerMillion > promptPerMillion) {
    throw new LedgerError('invalid', 'cached prompt tokens cannot cost more than others');
  }
  return {
    promptPerMillion: microUsd(within(promptPerMillion, MAX_PER_MILLION)),
    cachedPerMillion: cachedPerMillion === null ? null : microUsd(within(cachedPerMillion, MAX_PER_MILLION)),
    completionPerMillion: microUsd(within(rates.completionPerMillion, MAX_PER_MILLION)),
    perImage: microUsd(within(rates.perImage, MAX_PER_IMAGE)),
  };
}

function toRow(rates: Rates) {
  return {
    prompt_per_million: rates.promptPerMillion,
    cached_per_million: rates.cachedPerMillion ?? null,
    completion_per_million: rates.completionPerMillion,
    per_image: rates.perImage,
  };
}

function toPrice(row: Tables['prices']): Price {
  return {
    id: row.id,
    model: row.model,
    promptPerMillion: microUsd(row.prompt_per_million),
    cachedPerMillion: row.cached_per_million === null ? null : microUsd(row.cached_per_million),
    completionPerMillion: microUsd(row.completion_per_million),
    perImage: microUsd(row.per_image),
    validFrom: row.valid_from,
  };
}
