/** Reason why a ledger step was rejected. No money moved, except possibly after `unavailable`. */

type LedgerFault =
  /** Malformed value: a fraction, a negative amount, an empty id. A bug of the caller. */
  | 'invalid'
  /** The job id was used before: by an ended job, or by another account. */
  | 'job_taken'
  /** The same id was used before with other values. */
  | 'conflict'
  /** The database did not accept the step in time. The step may have happened; repeat the step. */
  | 'unavailable'
  | 'closed';

export class LedgerError extends Error {
  readonly fault: LedgerFault;

  constructor(fault: LedgerFault, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'LedgerError';
    this.fault = fault;
  }
}
