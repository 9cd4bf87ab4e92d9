/**
 * `Table`, `TableCard` for lists that the API returns page by page, and `Pager` for pages of a list in memory.
 *
 * On narrow screens a table scrolls, also by keyboard. With `stacked`, each row becomes a block that repeats the column names.
 */
import { ArrowDown, ArrowUp, ArrowUpDown, ChevronLeft, ChevronRight } from 'lucide-react';
import { type ReactNode, useState } from 'react';
import { Loaded, type LoadedProps } from '../feedback/error-state.js';
import { Skeleton } from '../feedback/placeholders.js';
import { Button } from '../forms/button.js';
import { formatCount } from './figures.js';
import { Card } from './page.js';

export interface Column<Row> {
  readonly key: string;
  readonly header: ReactNode;
  readonly cell: (row: Row) => ReactNode;
  /** Right-aligned, with tabular digits. */
  readonly numeric?: boolean;
  /** Occupies a whole line of a `compact` block on narrow screens. */
  readonly wide?: boolean;
  /** Row header for screen readers. Exactly one column per table. */
  readonly rowHeader?: boolean;
  /** Makes the header a button for sorting by this column. */
  readonly sortable?: boolean;
}

export interface Sorting {
  /** Key of the sorted column. */
  readonly key: string;
  readonly order: 'asc' | 'desc';
}

interface SortableProps {
  readonly sorting?: Sorting;
  readonly onSort?: (sorting: Sorting) => void;
}

interface TableProps<Row> extends SortableProps {
  /** Content of the table, for screen readers. */
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  /** Undefined while loading. */
  readonly rows: readonly Row[] | undefined;
  readonly rowKey: (row: Row) => string;
  readonly empty: ReactNode;
  /** On narrow screens, each row becomes a block with one value per line, or two values with `compact`. */
  readonly stacked?: boolean | 'compact';
  readonly loadingRows?: number;
}

export function Table<Row>({ caption, columns, rows, rowKey, empty, stacked = false, loadingRows = 4, ...sortable }: TableProps<Row>) {
  if (rows?.length === 0) return <>{empty}</>;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable content must be reachable by keyboard (WCAG 2.1.1)
    <section className="table-frame" aria-label={caption} tabIndex={0} aria-busy={rows === undefined || undefined}>
      <table className="table" data-stacked={stacked === true ? 'true' : stacked || undefined}>
        <caption className="visually-hidden">{caption}</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <Header key={column.key} column={column} {...sortable} />
            ))}
          </tr>
        </thead>
        <tbody>
          {rows === undefined
            ? Array.from({ length: loadingRows }, (_, index) => `loading-${index}`).map((key) => <LoadingRow key={key} columns={columns} />)
            : rows.map((row) => (
                <tr key={rowKey(row)}>
                  {columns.map((column) => (
                    <Cell key={column.key} column={column} row={row} />
                  ))}
                </tr>
              ))}
        </tbody>
      </table>
    </section>
  );
}

function Header<Row>({ column, sorting, onSort }: SortableProps & { readonly column: Column<Row> }) {
  const { key, header, numeric, sortable = false } = column;
  if (!sortable || onSort === undefined) {
    return (
      <th scope="col" data-numeric={numeric}>
        {header}
      </th>
    );
  }
  const order = sorting?.key === key ? sorting.order : null;
  const Icon = order === 'asc' ? ArrowUp : order === 'desc' ? ArrowDown : ArrowUpDown;
  return (
    <th scope="col" data-numeric={numeric} aria-sort={order === null ? 'none' : order === 'asc' ? 'ascending' : 'descending'}>
      <span className="sort-text">{header}</span>
      <button type="button" className="sort-button" onClick={() => onSort({ key, order: order === 'desc' ? 'asc' : 'desc' })}>
        {header}
        <Icon size={14} aria-hidden="true" />
      </button>
    </th>
  );
}

function Cell<Row>({ column, row }: { readonly column: Column<Row>; readonly row: Row }) {
  const content = column.cell(row);
  const label = typeof column.header === 'string' ? column.header : undefined;
  if (column.rowHeader) {
    return (
      <th scope="row" data-numeric={column.numeric} data-wide={column.wide} data-label={label}>
        {content}
      </th>
    );
  }
  return (
    <td data-numeric={column.numeric} data-wide={column.wide} data-label={label}>
      {content}
    </td>
  );
}

function LoadingRow<Row>({ columns }: { readonly columns: readonly Column<Row>[] }) {
  return (
    <tr>
      {columns.map(({ key, numeric, header }) => (
        <td key={key} data-numeric={numeric} data-label={typeof header === 'string' ? header : undefined}>
          <Skeleton width={numeric ? '3.5rem' : '7rem'} />
        </td>
      ))}
    </tr>
  );
}

interface LoadMoreProps {
  readonly list: { readonly hasNextPage: boolean; readonly isFetchingNextPage: boolean; readonly fetchNextPage: () => unknown };
}

function LoadMore({ list }: LoadMoreProps) {
  if (!list.hasNextPage) return null;
  return (
    <div className="more">
      <Button busy={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
        Show more
      </Button>
    </div>
  );
}

interface TableCardProps<Row> extends Omit<TableProps<Row>, 'rows'> {
  readonly title?: string | undefined;
  readonly about?: ReactNode;
  readonly actions?: ReactNode;
  readonly list: LoadMoreProps['list'] & LoadedProps['query'] & { readonly data: readonly Row[] | undefined };
  /** Subject of the sentence about a failed download, such as "The deposits". */
  readonly subject: string;
  /** Filters above the table. */
  readonly children?: ReactNode;
}

/** Card with a table of a list that is fetched page by page. */
export function TableCard<Row>({ title, about, actions, list, subject, children, ...table }: TableCardProps<Row>) {
  return (
    <Card title={title} about={about} actions={actions} flush>
      {children}
      <Loaded query={list} subject={subject}>
        <Table {...table} rows={list.data} />
      </Loaded>
      <LoadMore list={list} />
    </Card>
  );
}

/** A page of a list. `first` (index of its first row) and `page` count from 0. */
interface PageOfRows<Row> {
  readonly rows: readonly Row[] | undefined;
  readonly first: number;
  readonly total: number;
  readonly page: number;
  readonly pages: number;
  readonly go: (page: number) => void;
}

/** Divides `rows` into pages, and returns the last page if the list no longer reaches the requested one. */
export function usePages<Row>(rows: readonly Row[] | undefined, size: number): PageOfRows<Row> {
  const [requested, go] = useState(0);
  const total = rows?.length ?? 0;
  const pages = Math.max(1, Math.ceil(total / size));
  const page = Math.min(requested, pages - 1);
  const first = page * size;
  return { rows: rows?.slice(first, first + size), first, total, page, pages, go };
}

interface PagerProps extends Omit<PageOfRows<unknown>, 'rows'> {
  readonly size: number;
  /** Plural of the listed items, such as `providers`. */
  readonly items: string;
}

/** Buttons and position for {@link usePages}. */
export function Pager({ first, total, page, pages, go, size, items }: PagerProps) {
  const last = Math.min(total, first + size);
  return (
    <nav className="list-foot" aria-label={`Pages of ${items}`}>
      <span role="status" className="number">
        {total === 0 ? `No ${items}` : `${formatCount(first + 1)} to ${formatCount(last)} of ${formatCount(total)} ${items}`}
      </span>
      {pages === 1 ? null : (
        <span className="row">
          <Button size="small" disabled={page === 0} icon={<ChevronLeft size={16} aria-hidden="true" />} onClick={() => go(page - 1)}>
            Previous
          </Button>
          <Button
            size="small"
            disabled={page === pages - 1}
            icon={<ChevronRight size={16} aria-hidden="true" />}
            onClick={() => go(page + 1)}
          >
            Next
          </Button>
        </span>
      )}
    </nav>
  );
}
