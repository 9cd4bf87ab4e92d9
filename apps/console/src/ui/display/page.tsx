/** Elements of pages: header, card, figures (`Stats`, `Stat`), badge, and labelled facts (`Facts`, `Fact`). */
import { type ReactNode, useId } from 'react';
import type { Tone } from '../feedback/note.js';
import { Skeleton } from '../feedback/placeholders.js';

interface PageHeaderProps {
  readonly title: ReactNode;
  readonly about?: ReactNode;
  readonly actions?: ReactNode;
}

/** Heading of a page. Receives the focus after navigation. */
export function PageHeader({ title, about, actions }: PageHeaderProps) {
  return (
    <div className="page-header">
      <div>
        <h1 tabIndex={-1}>{title}</h1>
        {about === undefined ? null : <p className="page-about">{about}</p>}
      </div>
      {actions === undefined ? null : <div className="page-actions">{actions}</div>}
    </div>
  );
}

interface CardProps {
  readonly title?: ReactNode;
  /** Short text below the title. Needs a title or actions. */
  readonly about?: ReactNode;
  /** Buttons or choices at the end of the heading. */
  readonly actions?: ReactNode;
  readonly children: ReactNode;
  /** Content without padding, such as tables. */
  readonly flush?: boolean;
}

/** Section of a page with its own heading. */
export function Card({ title, about, actions, children, flush = false }: CardProps) {
  const id = useId();
  return (
    <section className="card" data-flush={flush || undefined} aria-labelledby={title === undefined ? undefined : id}>
      {title === undefined && actions === undefined ? null : (
        <div className="card-head">
          <div>
            {title === undefined ? null : (
              <h2 id={id} className="card-title">
                {title}
              </h2>
            )}
            {about === undefined ? null : <p className="card-about">{about}</p>}
          </div>
          {actions === undefined ? null : <div className="card-actions">{actions}</div>}
        </div>
      )}
      <div className="card-body">{children}</div>
    </section>
  );
}

/** Row of figures. */
export function Stats({ children }: { readonly children: ReactNode }) {
  return <dl className="stats">{children}</dl>;
}

interface StatProps {
  readonly label: string;
  /** Undefined while loading. */
  readonly value: ReactNode | undefined;
  /** Line below the figure. Null: still loading; the space is reserved. Undefined: no line. */
  readonly hint?: ReactNode;
}

/** Labelled figure with tabular digits. */
export function Stat({ label, value, hint }: StatProps) {
  return (
    <div className="stat">
      <dt>{label}</dt>
      <dd className="stat-value">{value === undefined ? <Skeleton width="4.5rem" height="1.5rem" /> : value}</dd>
      {hint === undefined ? null : <dd className="stat-hint">{hint}</dd>}
    </div>
  );
}

interface BadgeProps {
  readonly tone?: Tone;
  /** Dot before the text, for transient states. */
  readonly dot?: boolean;
  readonly children: ReactNode;
}

/** Short label of a state. The colour adds no information to the text. */
export function Badge({ tone = 'neutral', dot = false, children }: BadgeProps) {
  return (
    <span className="badge" data-tone={tone}>
      {dot ? <span className="badge-dot" aria-hidden="true" /> : null}
      {children}
    </span>
  );
}

/** List of labelled facts. */
export function Facts({ children }: { readonly children: ReactNode }) {
  return <dl className="facts">{children}</dl>;
}

/** Shows a placeholder if `children` is undefined or null. */
export function Fact({ label, children }: { readonly label: string; readonly children: ReactNode }) {
  return (
    <>
      <dt>{label}</dt>
      <dd>{children ?? <Skeleton width="7rem" height="1.25rem" />}</dd>
    </>
  );
}
