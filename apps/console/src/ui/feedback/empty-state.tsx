/** Placeholder for empty content, with the reason and the next step. */
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
