/** Amounts of money, from whole micro-USD to what people read. Never through floating point. */

const MICRO = 1_000_000n;

/** `$1,234.56`; amounts below a cent, and those that end between two cents, show as many digits as they have. */
export function formatUsd(microUsd: number): string {
  const negative = microUsd < 0;
  const micro = BigInt(Math.abs(microUsd));
  const dollars = (micro / MICRO).toLocaleString('en-US');
  const fraction = String(micro % MICRO).padStart(6, '0');
  const shown = fraction.replace(/0{1,4}$/, '');
  return `${negative ? '−' : ''}$${dollars}.${shown}`;
}

export interface MoneyProps {
  readonly microUsd: number;
}

export function Money({ microUsd }: MoneyProps) {
  return <span className="number">{formatUsd(microUsd)}</span>;
}
