/** `/admin/catalogue`: the operator's model catalogue, with the files that machines may serve under each model id. */
import type { AdminCatalogueEntry } from '@inference/formats';
import { Plus } from 'lucide-react';
import { useState } from 'react';
import { api } from '../../../api/api-client.js';
import { ConfirmDialog } from '../../../ui/dialogs/dialog.js';
import { Time } from '../../../ui/display/figures.js';
import { Card, PageHeader } from '../../../ui/display/page.js';
import { type Column, Table } from '../../../ui/display/table.js';
import { Loaded } from '../../../ui/feedback/error-state.js';
import { EmptyState } from '../../../ui/feedback/placeholders.js';
import { Button } from '../../../ui/forms/button.js';
import { cataloguePath, useCatalogue, useToastAndRefetch } from '../queries.js';
import { CatalogueDialog } from './catalogue-dialog.js';

type Open = { readonly what: 'put' | 'remove'; readonly entry: AdminCatalogueEntry } | { readonly what: 'new' } | null;

export function Page() {
  const catalogue = useCatalogue();
  const { data } = catalogue;
  const [open, setOpen] = useState<Open>(null);
  const toastAndRefetch = useToastAndRefetch();
  const close = (): void => setOpen(null);
  const remove = async ({ id }: AdminCatalogueEntry): Promise<void> => {
    await api.delete(cataloguePath(id));
    await toastAndRefetch(`${id} removed from the catalogue`);
  };
  const columns: readonly Column<AdminCatalogueEntry>[] = [
    ...COLUMNS,
    {
      key: 'actions',
      header: <span className="visually-hidden">Actions</span>,
      cell: (entry) => (
        <span className="cell-actions">
          <Button size="small" aria-label={`Change ${entry.id}`} onClick={() => setOpen({ what: 'put', entry })}>
            Change
          </Button>
          <Button size="small" kind="quiet" aria-label={`Remove ${entry.id}`} onClick={() => setOpen({ what: 'remove', entry })}>
            Remove
          </Button>
        </span>
      ),
    },
  ];
  return (
    <>
      <PageHeader
        title="Model catalogue"
        about={
          data === undefined
            ? 'Models and the files that machines may serve under their IDs.'
            : data.exclusive
              ? 'Only models of this catalogue are served. A machine with a different file cannot serve the model.'
              : 'Models outside the catalogue are served too. A machine with a different file cannot serve a catalogue model.'
        }
        actions={
          <Button kind="primary" icon={<Plus size={16} aria-hidden="true" />} onClick={() => setOpen({ what: 'new' })}>
            Add model
          </Button>
        }
      />
      <Loaded query={catalogue} subject="The catalogue">
        <Card flush>
          <Table
            caption="Models of the catalogue"
            columns={columns}
            rows={data?.data}
            rowKey={({ id }) => id}
            empty={
              <EmptyState title="The catalogue is empty">
                {data?.exclusive ? 'No models available until one is added.' : 'Machines may serve any file under any ID.'}
              </EmptyState>
            }
            stacked
          />
        </Card>
      </Loaded>
      {open?.what === 'new' ? <CatalogueDialog entry={null} onClose={close} /> : null}
      {open?.what === 'put' ? <CatalogueDialog entry={open.entry} onClose={close} /> : null}
      {open?.what === 'remove' ? (
        <ConfirmDialog
          onClose={close}
          title={`Remove ${open.entry.id} from the catalogue?`}
          confirm="Remove"
          onConfirm={() => remove(open.entry)}
        >
          <p>
            {data?.exclusive
              ? 'Machines stop serving it immediately.'
              : 'Machines may then serve any file under this ID. Its price remains.'}
          </p>
        </ConfirmDialog>
      ) : null}
    </>
  );
}

const TYPES: Readonly<Record<AdminCatalogueEntry['model_type'], string>> = { text: 'Text', embedding: 'Embeddings', image: 'Images' };

const COLUMNS: readonly Column<AdminCatalogueEntry>[] = [
  { key: 'id', header: 'Model', rowHeader: true, cell: ({ id }) => id },
  { key: 'name', header: 'Name', cell: ({ display_name }) => display_name },
  { key: 'type', header: 'Output', cell: ({ model_type }) => TYPES[model_type] },
  { key: 'quantization', header: 'Quantization', cell: ({ quantization }) => quantization },
  {
    key: 'memory',
    header: 'Memory',
    numeric: true,
    cell: ({ min_memory_bytes }) => (min_memory_bytes === null ? '—' : `${(min_memory_bytes / 2 ** 30).toFixed(1)} GB`),
  },
  { key: 'files', header: 'Files', numeric: true, cell: ({ file_sha256 }) => (file_sha256.length === 0 ? 'any' : file_sha256.length) },
  { key: 'updated', header: 'Updated', cell: ({ updated_at }) => <Time at={updated_at} as="date" /> },
];
