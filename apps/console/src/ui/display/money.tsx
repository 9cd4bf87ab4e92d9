/** Formats whole micro-USD as US dollars, without floating point. */

const MICRO = 1_000_000n;

/** `$1,234.56`; fractions of a cent show all their digits. */
export function formatUsd(microUsd: number): string {
  const negative = microUsd < 0;
  const micro = BigInt(Math.abs(microUsd));
  const dollars = (micro / MICRO).toLocaleString('en-US');
  const fraction = String(micro % MICRO).padStart(6, '0');
  const digits = fraction.replace(/0{1,4}$/, '');
  return `${negative ? '−' : ''}$${dollars}.${digits}`;
}

/** From one dollar on, whole cents rounded towards zero, never more than the amount. Smaller amounts show all digits. */
export function formatUsdRounded(microUsd: number): string {
  return formatUsd(Math.abs(microUsd) < 1_000_000 ? microUsd : Math.trunc(microUsd / 10_000) * 10_000);
}

interface MoneyProps {
  readonly microUsd: number;
  /** Whole cents from one dollar on, for large figures and columns. The tooltip shows the exact amount. */
  readonly rounded?: boolean;
}

export function Money({ microUsd, rounded = false }: MoneyProps) {
  if (!rounded) return <span className="number">{formatUsd(microUsd)}</span>;
  return (
    <span className="number" title={formatUsd(microUsd)}>
      {formatUsdRounded(microUsd)}
    </span>
  );
}
