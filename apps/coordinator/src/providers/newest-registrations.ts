/** `newestRegistrations`: merges the provider lists of several coordinators, for statistics and public attestation records. */

interface ProviderEntry {
  readonly provider_id: string;
  /** Registration time by the clock of the provider's coordinator, in milliseconds since 1970. */
  readonly registered_at: number;
}

/**
 * A provider that moves between coordinators is briefly in two lists. The entry with its newest registration stays.
 */
export function newestRegistrations<Entry extends ProviderEntry>(parts: readonly (readonly Entry[])[]): readonly Entry[] {
  if (parts.length === 1 && parts[0] !== undefined) return parts[0];
  const newest = new Map<string, Entry>();
  for (const entry of parts.flat()) {
    const known = newest.get(entry.provider_id);
    if (known === undefined || known.registered_at < entry.registered_at) newest.set(entry.provider_id, entry);
  }
  return [...newest.values()];
}
