/** `LedgerError` says why a ledger step or a new price was rejected. No money has moved, except possibly with `unavailable`. */

type LedgerFault =
  /** Malformed value, such as a fraction, a negative amount or an empty id. */
  | 'invalid'
  /** The job id was already used, by an ended job or another account. */
  | 'job_taken'
  /** The id of a withdrawal was already used with other values. */
  | 'conflict'
  /** The database, or another coordinator, did not answer in time. The step may have been applied, so the caller should repeat it. */
  | 'unavailable'
  /** The ledger was closed before the step. */
  | 'closed';

export class LedgerError extends Error {
  readonly fault: LedgerFault;

  constructor(fault: LedgerFault, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'LedgerError';
    this.fault = fault;
  }
}
