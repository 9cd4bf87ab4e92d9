/** `Bill` books one job in the ledger: reserves the maximum cost, then charges the given usage or releases the reservation. */
import { setTimeout as pause } from 'node:timers/promises';
import { type ApiError, apiError } from '@inference/formats';
import { type JobId, type ProviderId, withTimeLimit } from '@inference/protocol';
import type { Ledger, Reservation, ReserveOutcome, Settlement, SettleOutcome } from '../../billing/ledger/ledger.js';
import { formatUsd, type MicroUsd, microUsd } from '../../billing/micro-usd.js';
import { costOf, type Price } from '../../billing/prices/price.js';
import type { SealedNonce } from '../../database/sealed-nonce-repository.js';

/** Charge of a job. */
export type Charge =
  | { readonly kind: 'settled'; readonly cost: MicroUsd }
  | { readonly kind: 'free' }
  /** The ledger has not responded in time. The settlement continues in the background. */
  | { readonly kind: 'pending' }
  /** Nothing is charged: the ledger no longer has a reservation for this job, or all retries of the settlement failed. */
  | { readonly kind: 'unbilled' };

/** A failed ledger step, reported to operators. Contains no content. */
export type BillingProblem =
  | { readonly type: 'reserve_failed' | 'release_failed' | 'settle_failed'; readonly jobId: JobId; readonly error: unknown }
  /** A verified answer is not charged: retries failed for too long, or the reservation no longer exists. */
  | { readonly type: 'unsettled'; readonly settlement: Settlement; readonly reason: 'ledger_unavailable' | 'no_hold' };

/** Charge in micro-USD. Null if not known yet. */
export function chargedCost(charge: Charge): MicroUsd | null {
  switch (charge.kind) {
    case 'settled':
      return charge.cost;
    case 'free':
    case 'unbilled':
      return microUsd(0);
    case 'pending':
      return null;
    default:
      return charge satisfies never;
  }
}

export interface BillingTimings {
  /** Maximum time that a client waits for one ledger step. */
  readonly ledgerMs: number;
  /** Pause before the first retry of a failed settlement. Doubles with each retry, up to `settleRetryMaxMs`. */
  readonly settleRetryMs: number;
  readonly settleRetryMaxMs: number;
  /** Time after which a failed settlement gets one last retry. */
  readonly settleGiveUpMs: number;
}

export interface BillDependencies {
  readonly ledger: Pick<Ledger, 'reserve' | 'takeNonce' | 'settle' | 'release'>;
  readonly timings: BillingTimings;
  readonly now: () => number;
  readonly onProblem: (problem: BillingProblem) => void;
  /** Aborted when the coordinator stops. A settlement that waits for a retry then runs at once, for the last time. */
  readonly stopping: AbortSignal;
}

/** Why a job may not start: `error` for the client, `reason` for the log. */
interface ReserveRefusal {
  readonly error: ApiError;
  readonly reason: 'insufficient_balance' | 'key_limit_reached' | 'key_budget_exceeded' | 'replayed' | 'ledger_unavailable';
}

/** Usage with which a job is settled. The ledger also limits the counts to the reservation. */
export type JobUsage = Omit<Settlement, 'jobId' | 'providerId' | 'at' | 'served'>;

export interface BillTerms {
  /** Alternative reservations, one per model that may answer. Empty for token counting, which is free. */
  readonly reservations: readonly Reservation[];
  /** Replay nonce of a sealed (end-to-end encrypted) request without a reservation. A reservation contains its request's nonce. */
  readonly freeNonce: SealedNonce | null;
}

export class Bill {
  readonly #reservation: Reservation | null;
  readonly #freeNonce: SealedNonce | null;
  /** Price of each model that may answer. */
  readonly #prices: ReadonlyMap<string, Price>;
  readonly #deps: BillDependencies;
  #state: 'open' | 'reserving' | 'reserved' | 'settling' | 'closed' = 'open';
  /** Resolves after the last call to the ledger for this job. */
  readonly done: Promise<void>;
  #finish: () => void = () => {};

  constructor({ reservations, freeNonce }: BillTerms, dependencies: BillDependencies) {
    this.#reservation = coveringReservation(reservations);
    this.#freeNonce = freeNonce;
    this.#prices = new Map(reservations.map(({ model, price }) => [model, price]));
    this.#deps = dependencies;
    this.done = new Promise((resolve) => {
      this.#finish = resolve;
    });
  }

  /** Reserves the maximum cost, and consumes the nonce of a sealed request. Resolves to null if the job may run. */
  async reserve(): Promise<ReserveRefusal | null> {
    const reservation = this.#reservation;
    if (reservation === null) return this.#freeNonce === null ? null : this.#takeNonce(this.#freeNonce);
    this.#state = 'reserving';
    const { ledger, timings, onProblem } = this.#deps;
    let outcome: ReserveOutcome | 'late';
    try {
      const reserved = ledger.reserve(reservation);
      outcome = await withTimeLimit(reserved, timings.ledgerMs);
      if (outcome === 'late') {
        onProblem({ type: 'reserve_failed', jobId: reservation.jobId, error: new Error('the ledger did not answer in time') });
        void reserved.then(
          () => this.#release(reservation.jobId),
          () => this.#close(),
        );
        return UNAVAILABLE;
      }
    } catch (error) {
      // The ledger may or may not have made the reservation. The release, or later the reservation sweeper, removes it.
      onProblem({ type: 'reserve_failed', jobId: reservation.jobId, error });
      void this.#release(reservation.jobId);
      return UNAVAILABLE;
    }
    if (outcome.kind === 'reserved') {
      this.#state = 'reserved';
      return null;
    }
    this.#close();
    return refusalOf(outcome, reservation);
  }

  /** Charges usage at the price of the model that answered. Resolves to `pending` if the ledger takes longer than `ledgerMs`. */
  async settle({ model, ...usage }: JobUsage & { readonly providerId: ProviderId; readonly model: string }): Promise<Charge> {
    const reservation = this.#reservation;
    if (reservation === null) return { kind: 'free' };
    if (this.#state !== 'reserved') throw new Error(`a bill that is ${this.#state} cannot be settled`);
    this.#state = 'settling';
    const price = this.#prices.get(model);
    // `served` names the answering model if it is another than the reserved one.
    const served = price === undefined || model === reservation.model ? {} : { served: { model, price } };
    const settlement: Settlement = { jobId: reservation.jobId, ...usage, ...served, at: this.#deps.now() };
    const settled = this.#settleWithRetries(settlement);
    const outcome = await withTimeLimit(settled, this.#deps.timings.ledgerMs);
    return outcome === 'late' ? { kind: 'pending' } : outcome;
  }

  /** Releases the reservation unless it was settled. No effect without a reservation. */
  async close(): Promise<void> {
    if (this.#state === 'open') this.#close();
    else if (this.#state === 'reserved' && this.#reservation !== null) {
      await withTimeLimit(this.#release(this.#reservation.jobId), this.#deps.timings.ledgerMs);
    }
  }

  async #takeNonce(nonce: SealedNonce): Promise<ReserveRefusal | null> {
    const { ledger, timings, onProblem } = this.#deps;
    try {
      const isNew = await withTimeLimit(ledger.takeNonce(nonce), timings.ledgerMs);
      if (isNew === 'late') throw new Error('the ledger did not answer in time');
      return isNew ? null : REPLAYED;
    } catch (error) {
      onProblem({ type: 'reserve_failed', jobId: nonce.jobId, error });
      return UNAVAILABLE;
    }
  }

  async #settleWithRetries(settlement: Settlement): Promise<Charge> {
    const { ledger, timings, now, onProblem, stopping } = this.#deps;
    const giveUpAt = now() + timings.settleGiveUpMs;
    try {
      for (let pauseMs = timings.settleRetryMs; ; pauseMs = Math.min(2 * pauseMs, timings.settleRetryMaxMs)) {
        const isLast = stopping.aborted || now() >= giveUpAt;
        try {
          const charge = chargeOf(await ledger.settle(settlement));
          if (charge.kind === 'unbilled') onProblem({ type: 'unsettled', settlement, reason: 'no_hold' });
          return charge;
        } catch (error) {
          onProblem({ type: 'settle_failed', jobId: settlement.jobId, error });
        }
        if (isLast) {
          onProblem({ type: 'unsettled', settlement, reason: 'ledger_unavailable' });
          return { kind: 'unbilled' };
        }
        await pause(pauseMs, undefined, { signal: stopping }).catch(() => undefined);
      }
    } finally {
      this.#close();
    }
  }

  async #release(jobId: JobId): Promise<void> {
    this.#state = 'closed';
    try {
      await this.#deps.ledger.release(jobId, this.#deps.now());
    } catch (error) {
      this.#deps.onProblem({ type: 'release_failed', jobId, error });
    } finally {
      this.#close();
    }
  }

  #close(): void {
    this.#state = 'closed';
    this.#finish();
  }
}

const UNAVAILABLE: ReserveRefusal = { error: apiError('billing_unavailable'), reason: 'ledger_unavailable' };
const REPLAYED: ReserveRefusal = { error: apiError('sealed_request_replayed'), reason: 'replayed' };

function refusalOf(
  outcome: Exclude<ReserveOutcome, { kind: 'reserved' }>,
  { maxPromptTokens, maxCompletionTokens, images }: Reservation,
): ReserveRefusal {
  if (outcome.kind === 'replayed') return REPLAYED;
  const max =
    images === undefined
      ? `up to ${maxPromptTokens} input tokens and ${maxCompletionTokens} output tokens (max_tokens)`
      : `${images} images (n)`;
  const lower = images === undefined ? 'lower max_tokens' : 'request fewer or smaller images';
  const cost = `This request could cost up to ${usd(outcome.needed)} (${max})`;
  switch (outcome.kind) {
    case 'insufficient_balance': {
      const message = `${cost} and your balance is ${usd(outcome.available)}. Add credits or ${lower}.`;
      return { error: apiError('insufficient_quota', { message }), reason: outcome.kind };
    }
    case 'key_limit_reached': {
      const message = `${cost} and the spend limit of this API key leaves ${usd(outcome.left)}. Raise the limit or ${lower}.`;
      return { error: apiError('insufficient_quota', { message }), reason: outcome.kind };
    }
    case 'key_budget_exceeded': {
      const message = `${cost}. ${budgetState(outcome)} Raise the budget or ${lower}.`;
      return { error: apiError('key_budget_exceeded', { message }), reason: outcome.kind };
    }
    default:
      return outcome satisfies never;
  }
}

function budgetState({ budget, spent, reserved, resetsAt }: Extract<ReserveOutcome, { kind: 'key_budget_exceeded' }>): string {
  const running = reserved === 0 ? '' : ` and ${usd(reserved)} is reserved by running requests`;
  const resets = new Date(resetsAt).toISOString().replace('.000', '');
  return `Of this API key's budget of ${usd(budget.amount)} per ${budget.period}, ${usd(spent)} is spent${running}. The budget resets at ${resets}.`;
}

/** The reservation of the most expensive model, with the largest token counts of all models. Null for a free job. */
function coveringReservation(reservations: readonly Reservation[]): Reservation | null {
  const [only, ...others] = reservations;
  if (only === undefined) return null;
  if (others.length === 0) return only;
  const maxCost = ({ price, maxPromptTokens: promptTokens, maxCompletionTokens: completionTokens, images = 0 }: Reservation): number =>
    costOf(price, { promptTokens, completionTokens, images });
  const mostExpensive = others.reduce((best, other) => (maxCost(other) > maxCost(best) ? other : best), only);
  return {
    ...mostExpensive,
    maxPromptTokens: Math.max(...reservations.map(({ maxPromptTokens }) => maxPromptTokens)),
    maxCompletionTokens: Math.max(...reservations.map(({ maxCompletionTokens }) => maxCompletionTokens)),
  };
}

function chargeOf(outcome: SettleOutcome): Charge {
  switch (outcome.kind) {
    case 'settled':
    case 'already_settled':
      return { kind: 'settled', cost: outcome.cost };
    case 'released_before':
    case 'unknown_job':
      return { kind: 'unbilled' };
    default:
      return outcome satisfies never;
  }
}

function usd(amount: MicroUsd): string {
  return `$${formatUsd(amount)} (${amount} micro-USD)`;
}
