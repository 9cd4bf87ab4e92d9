/** `PaymentRepository` stores deposit orders, ends of withdrawals, payout accounts, and handled events of the payment processor. */

import { isAfterPosition } from './row-position.js';
import type { DepositSource } from './tables/ledger.js';
import type { DepositOrderState, WithdrawalEndClaim } from './tables/payments.js';
import type { Database, Tables } from './tables.js';

/** Amounts in micro-USD, times in milliseconds since 1970. */
export interface DepositOrder {
  readonly id: string;
  readonly accountId: string;
  readonly amount: number;
  readonly source: DepositSource;
  readonly state: DepositOrderState;
  readonly createdAt: number;
  readonly endedAt: number | null;
  /** Total refunded so far. */
  readonly refunded: number;
  readonly disputedAt: number | null;
}

export interface Withdrawal {
  readonly id: string;
  readonly accountId: string;
  readonly amount: number;
  readonly state: 'requested' | 'paid' | 'rejected';
  readonly requestedAt: number;
  readonly endedAt: number | null;
}

interface ListOptions {
  /** Null: all accounts. */
  readonly accountId: string | null;
  readonly limit: number;
  /** Position of the last entry of the page before; null: the first page. */
  readonly after: { readonly at: number; readonly id: string } | null;
}

export class PaymentRepository {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Stores an order. An existing order with the id stays unchanged. */
  async addOrder(order: DepositOrder): Promise<void> {
    await this.#database
      .insertInto('deposit_orders')
      .values({
        id: order.id,
        account_id: order.accountId,
        amount_micro_usd: order.amount,
        source: order.source,
        state: order.state,
        checkout_id: null,
        payment_id: null,
        created_at: order.createdAt,
        ended_at: order.endedAt,
        refunded_micro_usd: order.refunded,
        disputed_at: order.disputedAt,
      })
      .onConflict((conflict) => conflict.column('id').doNothing())
      .execute();
  }

  async setCheckout(id: string, checkoutId: string): Promise<void> {
    await this.#database.updateTable('deposit_orders').set({ checkout_id: checkoutId }).where('id', '=', id).execute();
  }

  findOrder(id: string): Promise<DepositOrder | null> {
    return this.#findOrder('id', id);
  }

  findOrderByCheckout(checkoutId: string): Promise<DepositOrder | null> {
    return this.#findOrder('checkout_id', checkoutId);
  }

  findOrderByPayment(paymentId: string): Promise<DepositOrder | null> {
    return this.#findOrder('payment_id', paymentId);
  }

  /** Marks an order as paid, even an expired or failed one, because the money has arrived. */
  async payOrder(id: string, paymentId: string | null, at: number): Promise<void> {
    await this.#database
      .updateTable('deposit_orders')
      .set({ state: 'paid', ended_at: at, ...(paymentId === null ? {} : { payment_id: paymentId }) })
      .where('id', '=', id)
      .where('state', '!=', 'paid')
      .execute();
  }

  /** Marks an open order as expired or failed. An order in another state stays unchanged. */
  async endOrder(id: string, state: 'expired' | 'failed', at: number): Promise<void> {
    await this.#database
      .updateTable('deposit_orders')
      .set({ state, ended_at: at })
      .where('id', '=', id)
      .where('state', '=', 'open')
      .execute();
  }

  /** Stores the total refunded so far. A lower total, from an older event, has no effect. */
  async noteRefund(id: string, total: number): Promise<void> {
    await this.#database
      .updateTable('deposit_orders')
      .set({ refunded_micro_usd: total })
      .where('id', '=', id)
      .where('refunded_micro_usd', '<', total)
      .execute();
  }

  async noteDispute(id: string, at: number): Promise<void> {
    await this.#database
      .updateTable('deposit_orders')
      .set({ disputed_at: at })
      .where('id', '=', id)
      .where('disputed_at', 'is', null)
      .execute();
  }

  async listOrders(options: ListOptions): Promise<DepositOrder[]> {
    let query = this.#database.selectFrom('deposit_orders').selectAll();
    const { accountId, after } = options;
    if (accountId !== null) query = query.where('account_id', '=', accountId);
    if (after !== null) {
      query = query.where((where) => isAfterPosition(where, 'created_at', 'id', after));
    }
    const rows = await query.orderBy('created_at', 'desc').orderBy('id', 'desc').limit(options.limit).execute();
    return rows.map(orderOf);
  }

  async knowsEvent(id: string): Promise<boolean> {
    const row = await this.#database.selectFrom('payment_events').select('id').where('id', '=', id).executeTakeFirst();
    return row !== undefined;
  }

  async addEvent(event: { id: string; type: string; orderId: string | null; outcome: string; at: number }): Promise<void> {
    await this.#database
      .insertInto('payment_events')
      .values({ id: event.id, type: event.type, deposit_id: event.orderId, outcome: event.outcome, received_at: event.at })
      .onConflict((conflict) => conflict.column('id').doNothing())
      .execute();
  }

  async listWithdrawals(options: ListOptions & { readonly state: Withdrawal['state'] | null }): Promise<Withdrawal[]> {
    let query = this.#database.selectFrom('withdrawals').selectAll();
    const { accountId, after } = options;
    if (accountId !== null) query = query.where('account_id', '=', accountId);
    if (options.state !== null) query = query.where('state', '=', options.state);
    if (after !== null) {
      query = query.where((where) => isAfterPosition(where, 'requested_at', 'id', after));
    }
    const rows = await query.orderBy('requested_at', 'desc').orderBy('id', 'desc').limit(options.limit).execute();
    return rows.map(withdrawalOf);
  }

  async findWithdrawal(id: string): Promise<Withdrawal | null> {
    const row = await this.#database.selectFrom('withdrawals').selectAll().where('id', '=', id).executeTakeFirst();
    return row === undefined ? null : withdrawalOf(row);
  }

  /** Stores how a withdrawal is going to end (the claim). If an earlier call stored a claim, that one stays. Resolves to the stored claim. */
  async claimEnd(withdrawalId: string, end: WithdrawalEndClaim, at: number): Promise<{ end: WithdrawalEndClaim; claimedAt: number }> {
    const row = await this.#database
      .insertInto('withdrawal_ends')
      .values({ withdrawal_id: withdrawalId, end, transfer_id: null, claimed_at: at })
      // An update without effect, because `do nothing` would not return the earlier claim.
      .onConflict((conflict) =>
        conflict.column('withdrawal_id').doUpdateSet((set) => ({ withdrawal_id: set.ref('excluded.withdrawal_id') })),
      )
      .returning(['end', 'claimed_at'])
      .executeTakeFirstOrThrow();
    return { end: row.end, claimedAt: row.claimed_at };
  }

  async noteTransfer(withdrawalId: string, transferId: string): Promise<void> {
    await this.#database
      .updateTable('withdrawal_ends')
      .set({ transfer_id: transferId })
      .where('withdrawal_id', '=', withdrawalId)
      .execute();
  }

  /** Removes the claim of a refused transfer, unless a later claim has replaced it. */
  async dropClaim(withdrawalId: string, claimedAt: number): Promise<void> {
    await this.#database
      .deleteFrom('withdrawal_ends')
      .where('withdrawal_id', '=', withdrawalId)
      .where('claimed_at', '=', claimedAt)
      .where('transfer_id', 'is', null)
      .execute();
  }

  async findPayoutAccount(accountId: string): Promise<string | null> {
    const row = await this.#database
      .selectFrom('payout_accounts')
      .select('payout_id')
      .where('account_id', '=', accountId)
      .executeTakeFirst();
    return row?.payout_id ?? null;
  }

  async setPayoutAccount(accountId: string, payoutId: string, at: number): Promise<void> {
    await this.#database
      .insertInto('payout_accounts')
      .values({ account_id: accountId, payout_id: payoutId, created_at: at })
      .onConflict((conflict) => conflict.column('account_id').doNothing())
      .execute();
  }

  async #findOrder(column: 'id' | 'checkout_id' | 'payment_id', value: string): Promise<DepositOrder | null> {
    const row = await this.#database.selectFrom('deposit_orders').selectAll().where(column, '=', value).executeTakeFirst();
    return row === undefined ? null : orderOf(row);
  }
}

function orderOf(row: Tables['deposit_orders']): DepositOrder {
  return {
    id: row.id,
    accountId: row.account_id,
    amount: row.amount_micro_usd,
    source: row.source,
    state: row.state,
    createdAt: row.created_at,
    endedAt: row.ended_at,
    refunded: row.refunded_micro_usd,
    disputedAt: row.disputed_at,
  };
}

function withdrawalOf(row: Tables['withdrawals']): Withdrawal {
  return {
    id: row.id,
    accountId: row.account_id,
    amount: row.amount,
    state: row.state,
    requestedAt: row.requested_at,
    endedAt: row.ended_at,
  };
}
