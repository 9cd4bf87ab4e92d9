/** Names of ledger accounts for earnings of providers without an owner: `provider:<id>`, or `provider:<id>:<number>` after an unlink. */

const UNCLAIMED = 'provider:';

/** Account of a provider's earnings before its first owner. */
export function unclaimedAccount(providerId: string): string {
  return `${UNCLAIMED}${providerId}`;
}

export function isUnclaimed(account: string): boolean {
  return account.startsWith(UNCLAIMED);
}

export function providerOfUnclaimed(account: string): string {
  return account.split(':')[1] ?? '';
}
