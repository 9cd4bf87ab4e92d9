/** `observedLedger` wraps a ledger to report the outcome and duration of each money-moving call to a listener, for metrics. */
import type { Ledger } from './ledger.js';
import type { StepType } from './ledger-steps.js';

/** `outcome`: the `kind` of the outcome, a word for a boolean one, or `failed` after an error. */
type StepListener = (step: StepType, outcome: string, durationMs: number) => void;

export function observedLedger(ledger: Ledger, listener: StepListener): Ledger {
  const watch = async <T>(step: StepType, running: Promise<T>, outcomeOf: (outcome: T) => string): Promise<T> => {
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
    takeNonce: (nonce) => watch('take_nonce', ledger.takeNonce(nonce), (isNew) => (isNew ? 'taken' : 'replayed')),
    settle: (settlement) => watch('settle', ledger.settle(settlement), kind),
    release: (jobId, at) => watch('release', ledger.release(jobId, at), (released) => (released ? 'released' : 'nothing_held')),
    deposit: (deposit) => watch('deposit', ledger.deposit(deposit), kind),
    requestWithdrawal: (request) => watch('request_withdrawal', ledger.requestWithdrawal(request), kind),
    endWithdrawal: (id, end, at) => watch('end_withdrawal', ledger.endWithdrawal(id, end, at), kind),
    balance: (accountId) => ledger.balance(accountId),
    pendingEarnings: (accountId) => ledger.pendingEarnings(accountId),
    linkProvider: (providerId, accountId, at) => ledger.linkProvider(providerId, accountId, at),
    sweep: (liveJobs, reservedBefore) => ledger.sweep(liveJobs, reservedBefore),
    close: () => ledger.close(),
  };
}
