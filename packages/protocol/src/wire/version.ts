/** Version negotiation. The provider names the versions it speaks in its first message; the coordinator picks one. */

/** Versions this build speaks, newest first. */
export const PROTOCOL_VERSIONS: readonly number[] = [1];

/** The newest version that both sides speak, or null. */
export function negotiateVersion(offered: readonly number[], spoken: readonly number[] = PROTOCOL_VERSIONS): number | null {
  const common = spoken.filter((version) => offered.includes(version));
  return common.length === 0 ? null : Math.max(...common);
}
