/** Labelled figure with tabular digits. */
import type { ReactNode } from 'react';
import { Skeleton } from '../feedback/skeleton.js';

/** Row of figures. */
export function Stats({ children }: { readonly children: ReactNode }) {
  return <dl className="stats">{children}</dl>;
}

interface StatProps {
  readonly label: string;
  /** Undefined while loading. */
  readonly value: ReactNode | undefined;
  /** One line. Null while loading: reserves the space. */
  readonly hint?: ReactNode;
}

export function Stat({ label, value, hint }: StatProps) {
  return (
    <div className="stat">
      <dt>{label}</dt>
      <dd className="stat-value">{value === undefined ? <Skeleton width="4.5rem" height="1.5rem" /> : value}</dd>
      {hint === undefined ? null : <dd className="stat-hint">{hint}</dd>}
    </div>
  );
}
