/** `UsageFilters`: form fields for range of days, model and key on the usage page. */
import type { ConsoleKey } from '@inference/formats';
import { useQuery } from '@tanstack/react-query';
import { readAllRows } from '../../api/paginated-query.js';
import { BILLING_QUERY_KEY } from '../../features/account/balance.js';
import { lastDays } from '../../features/account/utc-days.js';
import { Field, Segmented, Select } from '../../ui/forms/field.js';
import type { UsageFilter } from './usage-filter.js';

const RANGES = [
  { value: '7', label: '7 days' },
  { value: '30', label: '30 days' },
  { value: '90', label: '90 days' },
] as const;
/** `other`: the days match no preset, so no segment is selected. */
type Range = (typeof RANGES)[number]['value'] | 'other';

/** Value of `UsageFilter.key` for all keys of the playground. */
const PLAYGROUND = 'playground';

interface UsageFiltersProps {
  readonly filter: UsageFilter;
  /** Models used in the range. */
  readonly models: readonly string[];
  readonly onChange: (filter: UsageFilter) => void;
}

export function UsageFilters({ filter, models, onChange }: UsageFiltersProps) {
  const { data: keys } = useQuery({
    queryKey: [...BILLING_QUERY_KEY, 'key-names'],
    queryFn: ({ signal }) => readAllRows<ConsoleKey>('/console/v1/keys', signal),
  });
  const choices = [...new Set([...models, ...(filter.model === null ? [] : [filter.model])])].sort();
  const named = (keys ?? []).map(({ id, name }) => ({ value: id, label: name }));
  const known = filter.key === null || filter.key === PLAYGROUND || named.some(({ value }) => value === filter.key);
  const now = Date.now();
  const range: Range =
    RANGES.find(({ value }) => {
      const { from, to } = lastDays(Number(value), now);
      return from === filter.from && to === filter.to;
    })?.value ?? 'other';
  const setDay = (name: 'from' | 'to', day: string): void => {
    if (day !== '') onChange({ ...filter, [name]: day });
  };
  return (
    <search className="usage-filters" aria-label="Filters">
      <Segmented<Range>
        label="Range"
        value={range}
        options={RANGES}
        onValue={(days) => {
          if (days !== 'other') onChange({ ...filter, ...lastDays(Number(days), now) });
        }}
      />
      <Field label="From" type="date" value={filter.from} max={filter.to} onChange={(event) => setDay('from', event.target.value)} />
      <Field label="To" type="date" value={filter.to} min={filter.from} onChange={(event) => setDay('to', event.target.value)} />
      <Select
        label="Model"
        value={filter.model ?? ''}
        options={[{ value: '', label: 'All models' }, ...choices.map((id) => ({ value: id, label: id }))]}
        onValue={(model) => onChange({ ...filter, model: model === '' ? null : model })}
      />
      <Select
        label="Key"
        value={filter.key ?? ''}
        options={[
          { value: '', label: 'All keys' },
          { value: PLAYGROUND, label: 'Playground' },
          ...named,
          ...(known || filter.key === null ? [] : [{ value: filter.key, label: 'Another key' }]),
        ]}
        onValue={(key) => onChange({ ...filter, key: key === '' ? null : key })}
      />
    </search>
  );
}
