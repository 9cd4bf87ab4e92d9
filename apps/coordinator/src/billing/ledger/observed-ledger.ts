/** A ledger that tells how each of its steps went and how long it took. */
import type { Ledger } from './ledger.js';

export type LedgerStep = 'reserve' | 'settle' | 'release' | 'deposit' | 'request_withdrawal' | 'end_withdrawal';

/** `outcome`: the kind that the step resolved to, or `failed`. */
export type StepListener = (step: LedgerStep, outcome: string, ms: number) => void;

/** The same ledger; `listener` hears of every step when it ends. */
export function observedLedger(ledger: Ledger, listener: StepListener): Ledger {
  const watch = async <T>(step: LedgerStep, running: Promise<T>, outcomeOf: (outcome: T) => string): Promise<T> => {
    const begun = performance.now();
    let outcome = 'failed';
    try {
      const value = await running;
      outcome = outcomeOf(value);
      return value;
    } finally {
      listener(step, outcome, performance.now() - begun);
    }
  };
  const kind = (outcome: { readonly kind: string }): string => outcome.kind;
  return {
    reserve: (reservation) => watch('reserve', ledger.reserve(reservation), kind),
    settle: (settlement) => watch('settle', ledger.settle(settlement), kind),
    release: (jobId, at) => watch('release', ledger.release(jobId, at), (released) => (released ? 'released' : 'nothing_held')),
    deposit: (deposit) => watch('deposit', ledger.deposit(deposit), kind),
    requestWithdrawal: (request) => watch('request_withdrawal', ledger.requestWithdrawal(request), kind),
    endWithdrawal: (id, end, at) => watch('end_withdrawal', ledger.endWithdrawal(id, end, at), kind),
    balance: (accountId) => ledger.balance(accountId),
    pendingEarnings: (accountId) => ledger.pendingEarnings(accountId),
    linkProvider: (providerId, accountId, at) => ledger.linkProvider(providerId, accountId, at),
    sweep: (liveJobs, olderThan) => ledger.sweep(liveJobs, olderThan),
    close: () => ledger.close(),
  };
}
