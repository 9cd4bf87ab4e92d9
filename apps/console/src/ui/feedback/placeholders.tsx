/** `EmptyState`, `Skeleton` and `PageSkeleton`: placeholders for content that is empty, missing or still loading. */
import { Inbox, type LucideIcon } from 'lucide-react';
import type { ReactNode } from 'react';

interface EmptyStateProps {
  readonly title: string;
  readonly children?: ReactNode;
  readonly action?: ReactNode;
  readonly icon?: LucideIcon;
  /** 1 if the placeholder is the whole page. */
  readonly level?: 1;
}

export function EmptyState({ title, children, action, icon: Icon = Inbox, level }: EmptyStateProps) {
  return (
    <div className="empty-state">
      <Icon size={28} strokeWidth={1.5} aria-hidden="true" />
      {level === 1 ? (
        <h1 className="empty-title" tabIndex={-1}>
          {title}
        </h1>
      ) : (
        <p className="empty-title">{title}</p>
      )}
      {children === undefined ? null : <div className="empty-text">{children}</div>}
      {action}
    </div>
  );
}

interface SkeletonProps {
  /** CSS lengths. */
  readonly width?: string;
  readonly height?: string;
}

/** Bar with the final size of the content, to avoid layout shifts. Hidden from screen readers. */
export function Skeleton({ width = '100%', height = '1em' }: SkeletonProps) {
  return <span className="skeleton" style={{ width, height }} aria-hidden="true" />;
}

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
