/** Counts of connected providers by chip, state and model, for the overview page. */
import type { ProviderSnapshot, Stats } from '@inference/formats';
import { statusText } from './status-badges.js';

export interface Share {
  readonly label: string;
  readonly count: number;
}

/** Number of providers per chip, most frequent first. */
export function byChip(providers: readonly ProviderSnapshot[]): Share[] {
  return countedBy(providers, ({ chip }) => chip);
}

export function byStatus(providers: readonly ProviderSnapshot[]): Share[] {
  return countedBy(providers, ({ status }) => statusText(status).label);
}

function countedBy(providers: readonly ProviderSnapshot[], labelOf: (provider: ProviderSnapshot) => string): Share[] {
  const counts = new Map<string, number>();
  for (const provider of providers) counts.set(labelOf(provider), (counts.get(labelOf(provider)) ?? 0) + 1);
  return [...counts]
    .map(([label, count]) => ({ label, count }))
    .sort((one, other) => other.count - one.count || one.label.localeCompare(other.label));
}

export interface ModelRow {
  readonly model: string;
  readonly providers: number;
  /** Providers with trust level `hardware`. */
  readonly hardware: number;
}

/** Rows of the model table, sorted by number of providers, descending. */
export function modelRows(stats: Pick<Stats, 'models' | 'providers'>): ModelRow[] {
  const hardware = new Map<string, number>();
  for (const provider of stats.providers) {
    if (provider.trust_level !== 'hardware') continue;
    for (const model of provider.models) hardware.set(model, (hardware.get(model) ?? 0) + 1);
  }
  // A connected provider may list a model without serving it now, so `hardware` may exceed the number of serving providers.
  return stats.models
    .map(({ id, providers }) => ({ model: id, providers, hardware: Math.min(providers, hardware.get(id) ?? 0) }))
    .sort((one, other) => other.providers - one.providers || one.model.localeCompare(other.model));
}
