/** Client-side pagination of long lists. */
import { ChevronLeft, ChevronRight } from 'lucide-react';
import { useState } from 'react';
import { Button } from '../forms/button.js';
import { formatCount } from './number.js';

interface PageOfRows<Row> {
  readonly rows: readonly Row[] | undefined;
  readonly first: number;
  readonly total: number;
  readonly page: number;
  readonly pages: number;
  readonly go: (page: number) => void;
}

/** One page of `rows`. If the list shrinks, the last page is shown. */
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
  /** Plural of the listed things, such as `providers`. */
  readonly what: string;
}

export function Pager({ first, total, page, pages, go, size, what }: PagerProps) {
  const last = Math.min(total, first + size);
  return (
    <nav className="list-foot" aria-label={`Pages of ${what}`}>
      <span role="status" className="number">
        {total === 0 ? `No ${what}` : `${formatCount(first + 1)} to ${formatCount(last)} of ${formatCount(total)} ${what}`}
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
