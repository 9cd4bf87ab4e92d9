/** A number with its name. Numbers keep their width while they change. */
import type { ReactNode } from 'react';
import { Skeleton } from '../feedback/skeleton.js';

/** A row of them. */
export function Stats({ children }: { readonly children: ReactNode }) {
  return <dl className="stats">{children}</dl>;
}

interface StatProps {
  readonly label: string;
  /** Undefined: it is being fetched. */
  readonly value: ReactNode | undefined;
  /** One line. Where it comes later than the name, it is null until then, and its place is held. */
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
