/** The ledger's own accounts: where money comes from and goes to. No customer's account begins with `system:`. */

/** Everything outside: minus what was deposited, plus what was paid out. */
export const OUTSIDE = 'system:outside';
/** What the network keeps of the costs. */
export const FEES = 'system:fees';
/** Earnings that were asked for and are not paid yet. */
export const WITHDRAWALS = 'system:withdrawals';
