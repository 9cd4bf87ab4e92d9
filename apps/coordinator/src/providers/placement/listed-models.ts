/**
 * Which served models public reads list. Providers make model names up, so names that no proved machine serves are limited by
 * machine, by owner and in total. Models that are not listed can still be requested. Pure.
 */

/** Names of one machine that has not proved itself. */
export const MAX_NAMES_PER_PROVIDER = 32;
/** Such names of one owner's machines, and of all machines without an owner. */
export const MAX_NAMES_PER_OWNER = 128;
export const MAX_NAMES_WITHOUT_OWNER = 256;
export const MAX_LISTED_MODELS = 1000;

export interface ListingCandidate<S> {
  readonly id: string;
  readonly sessions: readonly S[];
}

export interface ListingRules<S> {
  /** Whether the machine has proved itself with the model. */
  isProven(session: S, model: string): boolean;
  /** Null: it has no owner. */
  ownerOf(session: S): string | null;
}

/** The ids to list: those of proved machines first, then those of most machines, then in alphabetical order. */
export function listedModels<S>(candidates: readonly ListingCandidate<S>[], rules: ListingRules<S>): ReadonlySet<string> {
  const ranked = candidates.map(({ id, sessions }) => ({
    id,
    sessions,
    isProven: sessions.some((session) => rules.isProven(session, id)),
  }));
  ranked.sort((a, b) => Number(b.isProven) - Number(a.isProven) || b.sessions.length - a.sessions.length || (a.id < b.id ? -1 : 1));
  const ofMachine = new Map<S, number>();
  const ofOwner = new Map<string | null, number>();
  const listed = new Set<string>();
  for (const { id, sessions, isProven } of ranked) {
    if (listed.size === MAX_LISTED_MODELS) break;
    if (!isProven) {
      const sponsor = sessions.find((session) => {
        const owner = rules.ownerOf(session);
        const maxOfOwner = owner === null ? MAX_NAMES_WITHOUT_OWNER : MAX_NAMES_PER_OWNER;
        return (ofMachine.get(session) ?? 0) < MAX_NAMES_PER_PROVIDER && (ofOwner.get(owner) ?? 0) < maxOfOwner;
      });
      if (sponsor === undefined) continue;
      const owner = rules.ownerOf(sponsor);
      ofMachine.set(sponsor, (ofMachine.get(sponsor) ?? 0) + 1);
      ofOwner.set(owner, (ofOwner.get(owner) ?? 0) + 1);
    }
    listed.add(id);
  }
  return listed;
}
