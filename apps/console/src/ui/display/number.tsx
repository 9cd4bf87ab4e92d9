/** Number formats. */

const WHOLE = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const SHORT = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });

export function formatCount(value: number): string {
  return WHOLE.format(value);
}

/** `12.3K`, for narrow space. */
export function formatShort(value: number): string {
  return Math.abs(value) < 10_000 ? WHOLE.format(value) : SHORT.format(value);
}

/** `1 request`, `2 requests`. */
export function pluralize(value: number, singular: string, plural = `${singular}s`): string {
  return `${formatCount(value)} ${value === 1 ? singular : plural}`;
}

/** At most one decimal place. */
export function formatRate(value: number): string {
  return value >= 100 ? WHOLE.format(value) : value.toFixed(1);
}

/** A fraction of 1 as percent, such as `7.5 %`; a dash for null (nothing to divide). */
export function formatShare(share: number | null): string {
  if (share === null) return '—';
  const value = share * 100;
  return `${value >= 10 || value === 0 ? Math.round(value) : value.toFixed(1)} %`;
}

/** Whole number. The short form has the exact number as its tooltip. */
export function Count({ value, short = false }: { readonly value: number; readonly short?: boolean }) {
  return (
    <span className="number" title={short ? formatCount(value) : undefined}>
      {short ? formatShort(value) : formatCount(value)}
    </span>
  );
}
