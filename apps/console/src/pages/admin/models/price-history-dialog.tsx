/** The prices of a model, newest first, those to come included. */
import type { AdminPrice } from '@inference/formats';
import { Dialog } from '../../../ui/dialogs/dialog.js';
import { Money } from '../../../ui/display/money.js';
import { type Column, Table } from '../../../ui/display/table.js';
import { ErrorState } from '../../../ui/feedback/error-state.js';
import { usePriceHistory } from '../queries.js';
import { modelName } from './model-name.js';
import { ValidFrom } from './valid-from.js';

export function PriceHistoryDialog({ model, onClose }: { readonly model: string; readonly onClose: () => void }) {
  const { data, error, refetch } = usePriceHistory(model);
  return (
    <Dialog open onOpenChange={(open) => (open ? undefined : onClose())} title={`Prices: ${modelName(model)}`}>
      {data === undefined && error !== null ? (
        <ErrorState what="The prices" error={error} onRetry={() => void refetch()} />
      ) : (
        <Table
          caption={`Prices of ${modelName(model)}`}
          columns={COLUMNS}
          rows={data?.history}
          rowKey={({ id }) => id}
          empty={<p>No prices set.</p>}
        />
      )}
    </Dialog>
  );
}

const COLUMNS: readonly Column<AdminPrice>[] = [
  { key: 'from', header: 'From', rowHeader: true, cell: ({ valid_from }) => <ValidFrom at={valid_from} /> },
  { key: 'prompt', header: 'Prompt', numeric: true, cell: ({ prompt_per_million }) => <Money microUsd={prompt_per_million} /> },
  { key: 'completion', header: 'Answer', numeric: true, cell: ({ completion_per_million }) => <Money microUsd={completion_per_million} /> },
  { key: 'image', header: 'Image', numeric: true, cell: ({ per_image }) => <Money microUsd={per_image} /> },
];
