/** Version negotiation. The provider names the versions it speaks in its first message; the coordinator picks one. */

/** From here on a provider may say that it is leaving or away, and refuse jobs with `away`. */
export const AVAILABILITY_VERSION = 2;

/** Versions this build speaks, newest first. */
export const PROTOCOL_VERSIONS: readonly number[] = [AVAILABILITY_VERSION, 1];

/** Versions of receipts this build knows, newest first. Each side names its own; one that says nothing knows version 1 alone. */
export const RECEIPT_VERSIONS: readonly (1 | 2)[] = [2, 1];

/** The newest version of receipts that all of these know. */
export function commonReceiptVersion(...known: readonly (readonly number[] | undefined)[]): 1 | 2 {
  return RECEIPT_VERSIONS.find((version) => known.every((versions = [1]) => versions.includes(version))) ?? 1;
}

/** The newest version that both sides speak, or null. */
export function negotiateVersion(offered: readonly number[], spoken: readonly number[] = PROTOCOL_VERSIONS): number | null {
  const common = spoken.filter((version) => offered.includes(version));
  return common.length === 0 ? null : Math.max(...common);
}
