/** `filterProviders` and `filterOptions`: filters of the page `/providers`, and their options. Pure. */
import type { ProviderSnapshot } from '@inference/formats';
import type { SelectOption } from '../../ui/forms/field.js';
import { statusText } from './status-badges.js';

interface ProviderFilter {
  /** Part of an id, chip or model, case-insensitive. */
  readonly search: string;
  /** Empty: all. */
  readonly chip: string;
  readonly status: string;
  readonly trust: string;
}

/** Matching providers, sorted by number of requests, descending. */
export function filterProviders(
  providers: readonly ProviderSnapshot[],
  { search, chip, status, trust }: ProviderFilter,
): ProviderSnapshot[] {
  const needle = search.trim().toLowerCase();
  return providers
    .filter(
      (provider) =>
        (chip === '' || provider.chip === chip) &&
        (status === '' || provider.status === status) &&
        (trust === '' || provider.trust_level === trust) &&
        (needle === '' || [provider.id, provider.chip, ...provider.models].some((text) => text.toLowerCase().includes(needle))),
    )
    .sort((one, other) => other.requests_served - one.requests_served || (one.id < other.id ? -1 : 1));
}

export function filterOptions(providers: readonly ProviderSnapshot[]): {
  readonly chips: readonly SelectOption[];
  readonly statuses: readonly SelectOption[];
} {
  const distinct = (values: readonly string[]): string[] =>
    [...new Set(values)].sort((one, other) => one.localeCompare(other, 'en', { numeric: true }));
  return {
    chips: distinct(providers.map(({ chip }) => chip)).map((chip) => ({ value: chip, label: chip })),
    statuses: distinct(providers.map(({ status }) => status)).map((status) => ({ value: status, label: statusText(status).label })),
  };
}
