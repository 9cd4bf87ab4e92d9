/** Filters of the provider list. Pure. */
import type { ProviderSnapshot } from '@inference/formats';
import type { SelectOption } from '../../ui/forms/select.js';
import { statusWords } from './status-badges.js';

interface ProviderChoice {
  /** Part of an id, a chip or a model; any case. */
  readonly search: string;
  /** Each empty for all. */
  readonly chip: string;
  readonly status: string;
  readonly trust: string;
}

/** Matching providers, most requests first. */
export function chosen(providers: readonly ProviderSnapshot[], { search, chip, status, trust }: ProviderChoice): ProviderSnapshot[] {
  const wanted = search.trim().toLowerCase();
  return providers
    .filter(
      (provider) =>
        (chip === '' || provider.chip === chip) &&
        (status === '' || provider.status === status) &&
        (trust === '' || provider.trust_level === trust) &&
        (wanted === '' || [provider.id, provider.chip, ...provider.models].some((text) => text.toLowerCase().includes(wanted))),
    )
    .sort((one, other) => other.requests_served - one.requests_served || (one.id < other.id ? -1 : 1));
}

export function optionsOf(providers: readonly ProviderSnapshot[]): {
  readonly chips: readonly SelectOption[];
  readonly statuses: readonly SelectOption[];
} {
  const distinct = (values: readonly string[]): string[] =>
    [...new Set(values)].sort((one, other) => one.localeCompare(other, 'en', { numeric: true }));
  return {
    chips: distinct(providers.map(({ chip }) => chip)).map((chip) => ({ value: chip, label: chip })),
    statuses: distinct(providers.map(({ status }) => status)).map((status) => ({ value: status, label: statusWords(status).label })),
  };
}
