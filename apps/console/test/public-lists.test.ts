import type { ProviderSnapshot } from '@inference/formats';
import { describe, expect, it } from 'vitest';
import { machineToVerify } from '../src/pages/network/live-verification.js';
import { filterOptions, filterProviders } from '../src/pages/network/provider-filter.js';
import { byChip, byStatus, modelRows } from '../src/pages/network/summaries.js';

function provider(id: string, fields: Partial<ProviderSnapshot> = {}): ProviderSnapshot {
  return {
    id,
    chip: 'Apple M4',
    chip_family: 'M4',
    status: 'online',
    memory_gb: 32,
    gpu_cores: 10,
    trust_level: 'self_signed',
    decode_tps: 0,
    requests_served: 0,
    tokens_generated: 0,
    models: ['tiny'],
    current_model: '',
    ...fields,
  };
}

const PROVIDERS = [
  provider('aa', { requests_served: 1 }),
  provider('bb', { chip: 'Apple M10', requests_served: 9, trust_level: 'hardware', models: ['tiny', 'org/Large'] }),
  provider('cc', { chip: 'Apple M10', status: 'quarantined' }),
];

describe('the list of providers', () => {
  const all = { search: '', chip: '', status: '', trust: '' };
  const ids = (choice: Partial<typeof all>): string[] => filterProviders(PROVIDERS, { ...all, ...choice }).map(({ id }) => id);

  it('lists providers with the most requests first', () => expect(ids({})).toEqual(['bb', 'aa', 'cc']));
  it('applies every filter, and matches parts of ids, chips and models in any case', () => {
    expect(ids({ chip: 'Apple M10' })).toEqual(['bb', 'cc']);
    expect(ids({ chip: 'Apple M10', status: 'online' })).toEqual(['bb']);
    expect(ids({ trust: 'hardware' })).toEqual(['bb']);
    expect(ids({ search: ' large' })).toEqual(['bb']);
    expect(ids({ search: 'C' })).toEqual(['cc']);
    expect(ids({ search: 'm1' })).toEqual(['bb', 'cc']);
  });
  it('offers existing values, chips in numeric order', () => {
    const { chips, statuses } = filterOptions(PROVIDERS);
    expect(chips.map(({ value }) => value)).toEqual(['Apple M4', 'Apple M10']);
    expect(statuses).toEqual([
      { value: 'online', label: 'Online' },
      { value: 'quarantined', label: 'Quarantined' },
    ]);
  });
});

describe('the sums of the first page', () => {
  it('count providers by chip and by state, the most frequent first', () => {
    expect(byChip(PROVIDERS)).toEqual([
      { label: 'Apple M10', count: 2 },
      { label: 'Apple M4', count: 1 },
    ]);
    expect(byStatus(PROVIDERS)).toEqual([
      { label: 'Online', count: 2 },
      { label: 'Quarantined', count: 1 },
    ]);
  });
  it('count the providers of a model with hardware trust, never more than serve it', () => {
    const models = [
      { id: 'org/Large', providers: 1 },
      { id: 'tiny', providers: 2 },
      { id: 'gone', providers: 0 },
    ];
    expect(modelRows({ models, providers: PROVIDERS })).toEqual([
      { model: 'tiny', providers: 2, hardware: 1 },
      { model: 'org/Large', providers: 1, hardware: 1 },
      { model: 'gone', providers: 0, hardware: 0 },
    ]);
  });
});

describe('the machine that the home page verifies', () => {
  const idOf = (...providers: ProviderSnapshot[]) => machineToVerify(providers)?.id ?? null;

  it('is online, then has attested hardware, then served the most requests', () => {
    expect(idOf()).toBeNull();
    const away = provider('aa', { status: 'away', trust_level: 'hardware', requests_served: 9 });
    expect(idOf(away, provider('bb'))).toBe('bb');
    expect(idOf(provider('bb', { requests_served: 9 }), provider('cc', { trust_level: 'hardware' }))).toBe('cc');
    expect(idOf(provider('bb'), provider('cc', { requests_served: 1 }))).toBe('cc');
    expect(idOf(provider('cc'), provider('bb'))).toBe('bb');
    expect(idOf(away)).toBe('aa');
  });
});
