/** Says that there is nothing here, why, and what to do about it. */
import { Inbox, type LucideIcon } from 'lucide-react';
import type { ReactNode } from 'react';

interface EmptyStateProps {
  readonly title: string;
  readonly children?: ReactNode;
  readonly action?: ReactNode;
  readonly icon?: LucideIcon;
  /** 1 where it is all of the page. */
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
