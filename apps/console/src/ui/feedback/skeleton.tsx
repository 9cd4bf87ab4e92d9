/** Placeholders for loading content, in its final size, so that nothing shifts. */

interface SkeletonProps {
  /** CSS lengths. */
  readonly width?: string;
  readonly height?: string;
}

/** One bar, hidden from screen readers. The parent sets `aria-busy`. */
export function Skeleton({ width = '100%', height = '1em' }: SkeletonProps) {
  return <span className="skeleton" style={{ width, height }} aria-hidden="true" />;
}

/** Placeholder of a whole page. */
export function PageSkeleton() {
  return (
    <div className="page-skeleton" role="status" aria-busy="true">
      <span className="visually-hidden">Loading…</span>
      <Skeleton width="14rem" height="2rem" />
      <Skeleton width="24rem" height="1.25rem" />
      <Skeleton height="12rem" />
      <Skeleton height="18rem" />
    </div>
  );
}
