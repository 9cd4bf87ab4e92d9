/** Money that did not move as it should, for the operator: ids, counts and codes, never content. */
import type { BillingProblem } from './inference/bill.js';
import { errorFacts, type Log } from './log.js';

export function logBilling(log: Log, problem: BillingProblem): void {
  switch (problem.type) {
    case 'reserve_failed':
    case 'release_failed':
    case 'settle_failed':
      log.error({ job: problem.jobId, problem: problem.type, error: errorFacts(problem.error) }, 'ledger step failed');
      return;
    case 'unsettled': {
      // All that is needed to settle it by hand.
      const { jobId, providerId, promptTokens, completionTokens } = problem.settlement;
      const counts = { prompt_tokens: promptTokens, completion_tokens: completionTokens };
      log.error(
        { job: jobId, provider: providerId, problem: problem.type, reason: problem.reason, ...counts },
        'delivered and not paid for',
      );
      return;
    }
    default:
      problem satisfies never;
  }
}
