/** Holds the place of what is being fetched, in its size, so that nothing moves when it comes. */

interface SkeletonProps {
  /** CSS lengths. */
  readonly width?: string;
  readonly height?: string;
}

/** One bar. Hidden from screen readers: whoever shows it says `aria-busy`. */
export function Skeleton({ width = '100%', height = '1em' }: SkeletonProps) {
  return <span className="skeleton" style={{ width, height }} aria-hidden="true" />;
}

/** A whole page of which nothing is known yet. */
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
