/** `/models`: the models that are served now, with prices and measurements. Search and type are part of the URL. */
import { MEASUREMENT_COLUMNS, PRICE_COLUMNS } from '../../features/models/model-columns.js';
import { type ServedModel, TYPE_LABELS, useServedModels, VISION_LABEL } from '../../features/models/served-models.js';
import { Card, PageHeader } from '../../ui/display/page.js';
import { Pager, Table, usePages } from '../../ui/display/table.js';
import { Loaded } from '../../ui/feedback/error-state.js';
import { EmptyState } from '../../ui/feedback/placeholders.js';
import { Field, Segmented } from '../../ui/forms/field.js';
import { useUrlChoice, useUrlText } from '../../ui/navigation/url-state.js';
import './models-page.css';
import { filterModels, MODEL_TYPES } from './model-filter.js';

const PAGE_SIZE = 50;
const COLUMNS = [...PRICE_COLUMNS, ...MEASUREMENT_COLUMNS];

export function Page() {
  const servedModels = useServedModels();
  const [search, setSearch] = useUrlText('search');
  const [type, setType] = useUrlChoice('type', MODEL_TYPES);
  const all = servedModels.data;
  const pages = usePages(all && filterModels(all, { search, type }), PAGE_SIZE);
  return (
    <>
      <PageHeader
        title="Models"
        about="Served now by the machines of this network. Prices are per million tokens or per image. Figures are measured."
      />
      <search>
        <form className="model-filters" onSubmit={(event) => event.preventDefault()}>
          <Field
            label="Search"
            type="search"
            placeholder="Name or ID"
            autoComplete="off"
            value={search}
            onChange={(event) => setSearch(event.target.value)}
          />
          <Segmented
            label="Type"
            value={type}
            onValue={setType}
            options={[
              { value: 'all', label: 'All' },
              { value: 'text', label: TYPE_LABELS.text },
              { value: 'vision', label: VISION_LABEL },
              { value: 'embedding', label: TYPE_LABELS.embedding },
              { value: 'image', label: TYPE_LABELS.image },
            ]}
          />
        </form>
      </search>
      <Card flush>
        <Loaded query={servedModels} subject="The models">
          <Table caption="Models" columns={COLUMNS} rows={pages.rows} rowKey={({ id }) => id} stacked empty={<NoModels all={all} />} />
          {pages.total > PAGE_SIZE ? <Pager {...pages} size={PAGE_SIZE} items="models" /> : null}
        </Loaded>
      </Card>
      <p className="muted small model-measures">
        First token and tokens per second: medians over settled requests of the last 24 hours, queue time included. Uptime: share of checks,
        one per minute, at which a machine served the model. A dash means no measurement.
      </p>
    </>
  );
}

function NoModels({ all }: { readonly all: readonly ServedModel[] | undefined }) {
  if (all?.length === 0) return <EmptyState title="No models available">Models appear here when a machine serves them.</EmptyState>;
  return <EmptyState title="No models match">Change the search or the type above.</EmptyState>;
}
