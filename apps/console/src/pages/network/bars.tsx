/** A list of counts, each with a bar of its share. The bar only repeats the number beside it. */
import { formatCount } from '../../ui/display/number.js';
import type { Share } from './summaries.js';

/** More rows than these become one. */
const MAX_ROWS = 8;

export function Bars({ rows }: { readonly rows: readonly Share[] }) {
  const total = rows.reduce((sum, { count }) => sum + count, 0);
  const rest = rows.slice(MAX_ROWS);
  const shown =
    rest.length < 2
      ? rows
      : [...rows.slice(0, MAX_ROWS), { label: `${rest.length} others`, count: rest.reduce((sum, { count }) => sum + count, 0) }];
  return (
    <ul className="bars">
      {shown.map(({ label, count }) => (
        <li key={label} className="bar-row">
          <span className="bar-label">{label}</span>
          <span className="number">{formatCount(count)}</span>
          <svg className="bar" viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true">
            <rect width={total === 0 ? 0 : (100 * count) / total} height={1} />
          </svg>
        </li>
      ))}
    </ul>
  );
}
