/** Columns of model tables: name, prices, context, and measurements. */
import './models.css';
import { Link } from 'wouter';
import { PATHS, pathWithId } from '../../routing/paths.js';
import { formatCount, formatRate, formatUsd } from '../../ui/display/figures.js';
import { Badge } from '../../ui/display/page.js';
import type { Column } from '../../ui/display/table.js';
import { formatContext, formatLatency, formatUptime } from './model-figures.js';
import { pricesOf, readsImages, type ServedModel, TYPE_LABELS, VISION_LABEL } from './served-models.js';

type ModelColumn = Column<ServedModel>;

const NONE = '–';

function price(microUsd: number | null): string {
  return microUsd === null ? NONE : formatUsd(microUsd);
}

export const PRICE_COLUMNS: readonly ModelColumn[] = [
  {
    key: 'model',
    header: 'Model',
    rowHeader: true,
    cell: ({ id, name, metadata, architecture }) => (
      <span className="model-cell">
        <span>
          <Link href={pathWithId(PATHS.model, id)}>{name}</Link>
          {metadata.model_type === 'text' ? null : <Badge>{TYPE_LABELS[metadata.model_type]}</Badge>}
          {readsImages({ architecture }) ? <Badge>{VISION_LABEL}</Badge> : null}
        </span>
        {name === id ? null : <span className="model-cell-id">{id}</span>}
      </span>
    ),
  },
  { key: 'input', header: 'Input, 1M tokens', numeric: true, cell: (model) => price(pricesOf(model).input) },
  {
    key: 'output',
    header: 'Output, 1M tokens',
    numeric: true,
    cell: (model) => {
      const { output, image } = pricesOf(model);
      return image === null ? price(output) : `${formatUsd(image)} per image`;
    },
  },
  {
    key: 'context',
    header: 'Context',
    numeric: true,
    cell: ({ context_length }) => (context_length === undefined || context_length === null ? NONE : formatContext(context_length)),
  },
];

export const MEASUREMENT_COLUMNS: readonly ModelColumn[] = [
  {
    key: 'first-token',
    header: 'First token',
    numeric: true,
    cell: ({ statistics: { first_token_ms } }) => (first_token_ms === null ? NONE : formatLatency(first_token_ms.p50)),
  },
  {
    key: 'speed',
    header: 'Tokens/s',
    numeric: true,
    cell: ({ statistics: { tokens_per_second } }) => (tokens_per_second === null ? NONE : formatRate(tokens_per_second.p50)),
  },
  {
    key: 'uptime',
    header: 'Uptime, 30 days',
    numeric: true,
    cell: ({ statistics: { uptime } }) => (uptime === null ? NONE : formatUptime(uptime.share)),
  },
  {
    key: 'machines',
    header: 'Machines',
    numeric: true,
    cell: ({ metadata: { provider_count, hardware_providers = 0 } }) => (
      <span title={`${formatCount(hardware_providers)} with trust level hardware`}>{formatCount(provider_count)}</span>
    ),
  },
];
