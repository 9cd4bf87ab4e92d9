/** Why a ledger step was not done. None of these moved any money. */

export type LedgerFault =
  /** A value that no step may have: a fraction, a negative amount, an empty id. A mistake of the caller. */
  | 'invalid'
  /** The job id was used before: by an ended job, or by another account. */
  | 'job_taken'
  /** The same id came with other values than before. */
  | 'conflict'
  /** The database did not take it in time. The step may have happened: repeat it. */
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
