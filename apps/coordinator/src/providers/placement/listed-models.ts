/**
 * `listedModels` selects the models of public lists. To prevent spam, it limits the names that only unproven providers serve.
 *
 * In public lists, a provider counts as proven for a model with hardware trust, or once an answer of the model was verified.
 */

/** Maximum names that one provider adds to the list without being proven for them. */
export const MAX_NAMES_PER_PROVIDER = 32;
/** Maximum names from the unproven providers of one owner. */
export const MAX_NAMES_PER_OWNER = 128;
/** Maximum names from all unproven providers without an owner together. */
export const MAX_NAMES_WITHOUT_OWNER = 256;
export const MAX_LISTED_MODELS = 1000;

interface ListingCandidate<S> {
  readonly id: string;
  readonly sessions: readonly S[];
}

interface ListingRules<S> {
  /** Whether verified answers or a certificate chain vouch for the provider with this model. */
  isProven(session: S, model: string): boolean;
  /** Account of the owner; null if the provider has none. */
  ownerOf(session: S): string | null;
}

/** Ids to list. Models of proven providers come first, then by number of providers, then alphabetically. */
export function listedModels<S>(candidates: readonly ListingCandidate<S>[], rules: ListingRules<S>): ReadonlySet<string> {
  const ranked = candidates.map(({ id, sessions }) => ({
    id,
    sessions,
    isProven: sessions.some((session) => rules.isProven(session, id)),
  }));
  ranked.sort((a, b) => Number(b.isProven) - Number(a.isProven) || b.sessions.length - a.sessions.length || (a.id < b.id ? -1 : 1));
  const ofProvider = new Map<S, number>();
  const ofOwner = new Map<string | null, number>();
  const listed = new Set<string>();
  for (const { id, sessions, isProven } of ranked) {
    if (listed.size === MAX_LISTED_MODELS) break;
    if (!isProven) {
      // The name counts against the limits of one of its providers.
      const sponsor = sessions.find((session) => {
        const owner = rules.ownerOf(session);
        const maxOfOwner = owner === null ? MAX_NAMES_WITHOUT_OWNER : MAX_NAMES_PER_OWNER;
        return (ofProvider.get(session) ?? 0) < MAX_NAMES_PER_PROVIDER && (ofOwner.get(owner) ?? 0) < maxOfOwner;
      });
      if (sponsor === undefined) continue;
      const owner = rules.ownerOf(sponsor);
      ofProvider.set(sponsor, (ofProvider.get(sponsor) ?? 0) + 1);
      ofOwner.set(owner, (ofOwner.get(owner) ?? 0) + 1);
    }
    listed.add(id);
  }
  return listed;
}
