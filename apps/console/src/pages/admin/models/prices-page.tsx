/** `/admin/prices`: current prices, price history, and a form for new prices. */
import type { AdminPrice } from '@inference/formats';
import { Plus } from 'lucide-react';
import { useState } from 'react';
import { Dialog } from '../../../ui/dialogs/dialog.js';
import { Money, Time } from '../../../ui/display/figures.js';
import { Card, PageHeader } from '../../../ui/display/page.js';
import { type Column, Table } from '../../../ui/display/table.js';
import { Loaded } from '../../../ui/feedback/error-state.js';
import { EmptyState } from '../../../ui/feedback/placeholders.js';
import { Button } from '../../../ui/forms/button.js';
import { usePriceHistory, usePrices } from '../queries.js';
import { modelName, PriceDialog } from './price-dialog.js';

type Open = { readonly what: 'set' | 'history'; readonly price: AdminPrice } | { readonly what: 'new' } | null;

export function Page() {
  const prices = usePrices();
  const [open, setOpen] = useState<Open>(null);
  const close = (): void => setOpen(null);
  const columns: readonly Column<AdminPrice>[] = [
    ...COLUMNS,
    {
      key: 'actions',
      header: <span className="visually-hidden">Actions</span>,
      cell: (price) => (
        <span className="cell-actions">
          <Button size="small" aria-label={`Change the price of ${price.model}`} onClick={() => setOpen({ what: 'set', price })}>
            Change
          </Button>
          <Button size="small" kind="quiet" aria-label={`History of ${price.model}`} onClick={() => setOpen({ what: 'history', price })}>
            History
          </Button>
        </span>
      ),
    },
  ];
  return (
    <>
      <PageHeader
        title="Prices"
        about="In US dollars. New prices apply to new requests; running requests keep their price."
        actions={
          <Button kind="primary" icon={<Plus size={16} aria-hidden="true" />} onClick={() => setOpen({ what: 'new' })}>
            Add price
          </Button>
        }
      />
      <Loaded query={prices} subject="The prices">
        <Card flush>
          <Table
            caption="Current prices"
            columns={columns}
            rows={prices.data?.data}
            rowKey={({ model }) => model}
            empty={<EmptyState title="No prices set">Models use the default price from the coordinator settings.</EmptyState>}
            stacked
          />
        </Card>
      </Loaded>
      {open?.what === 'set' ? <PriceDialog price={open.price} onClose={close} /> : null}
      {open?.what === 'new' ? <PriceDialog price={null} onClose={close} /> : null}
      {open?.what === 'history' ? <PriceHistoryDialog model={open.price.model} onClose={close} /> : null}
    </>
  );
}

const COLUMNS: readonly Column<AdminPrice>[] = [
  { key: 'model', header: 'Model', rowHeader: true, cell: ({ model }) => modelName(model) },
  {
    key: 'prompt',
    header: 'Input price per 1M tokens',
    numeric: true,
    cell: ({ prompt_per_million }) => <Money microUsd={prompt_per_million} />,
  },
  {
    key: 'cached',
    header: 'Cached input per 1M tokens',
    numeric: true,
    cell: ({ cached_per_million }) => <Money microUsd={cached_per_million} />,
  },
  {
    key: 'completion',
    header: 'Output price per 1M tokens',
    numeric: true,
    cell: ({ completion_per_million }) => <Money microUsd={completion_per_million} />,
  },
  { key: 'image', header: 'Per 1024×1024 image', numeric: true, cell: ({ per_image }) => <Money microUsd={per_image} /> },
  { key: 'from', header: 'Since', cell: ({ valid_from }) => <ValidFrom at={valid_from} /> },
];

function PriceHistoryDialog({ model, onClose }: { readonly model: string; readonly onClose: () => void }) {
  const history = usePriceHistory(model);
  return (
    <Dialog onClose={onClose} title={`Prices: ${modelName(model)}`}>
      <Loaded query={history} subject="The prices">
        <Table
          caption={`Prices of ${modelName(model)}`}
          columns={HISTORY_COLUMNS}
          rows={history.data?.history}
          rowKey={({ id }) => id}
          empty={<p>No prices set.</p>}
        />
      </Loaded>
    </Dialog>
  );
}

const HISTORY_COLUMNS: readonly Column<AdminPrice>[] = [
  { key: 'from', header: 'From', rowHeader: true, cell: ({ valid_from }) => <ValidFrom at={valid_from} /> },
  { key: 'prompt', header: 'Input', numeric: true, cell: ({ prompt_per_million }) => <Money microUsd={prompt_per_million} /> },
  { key: 'cached', header: 'Cached input', numeric: true, cell: ({ cached_per_million }) => <Money microUsd={cached_per_million} /> },
  { key: 'completion', header: 'Output', numeric: true, cell: ({ completion_per_million }) => <Money microUsd={completion_per_million} /> },
  { key: 'image', header: 'Per 1024×1024 image', numeric: true, cell: ({ per_image }) => <Money microUsd={per_image} /> },
];

function ValidFrom({ at }: { readonly at: string }) {
  return Date.parse(at) === 0 ? 'the settings' : <Time at={at} as="date-time" />;
}
