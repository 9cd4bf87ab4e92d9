/** Version negotiation. The provider lists its versions in `hello`; the coordinator chooses the newest common version. */

/** First version in which providers send `availability` messages and refuse jobs with `away`. */
export const AVAILABILITY_VERSION = 2;

/** Protocol versions of this build, newest first. */
export const PROTOCOL_VERSIONS: readonly number[] = [AVAILABILITY_VERSION, 1];

/** Versions of plain-mode receipts in this build, newest first. */
export const RECEIPT_VERSIONS: readonly (1 | 2)[] = [2, 1];

/** Newest receipt version that all lists contain; 1 if there is none. A missing list means version 1 only. */
export function commonReceiptVersion(...known: readonly (readonly number[] | undefined)[]): 1 | 2 {
  return RECEIPT_VERSIONS.find((version) => known.every((versions = [1]) => versions.includes(version))) ?? 1;
}

/** Newest common protocol version, or null. */
export function negotiateVersion(offered: readonly number[], supported: readonly number[] = PROTOCOL_VERSIONS): number | null {
  const common = supported.filter((version) => offered.includes(version));
  return common.length === 0 ? null : Math.max(...common);
}
