/** Section of a page with its own heading. */
import { type ReactNode, useId } from 'react';

interface CardProps {
  readonly title?: ReactNode;
  /** One sentence below the title. */
  readonly about?: ReactNode;
  /** Buttons or choices at the end of the heading. */
  readonly actions?: ReactNode;
  readonly children: ReactNode;
  /** Content without padding, such as tables. */
  readonly flush?: boolean;
}

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
