/** Frame of the sign-in pages: one narrow card with one form. */
import './account.css';
import type { ReactNode } from 'react';

interface AuthCardProps {
  readonly title: string;
  readonly about?: ReactNode;
  readonly children: ReactNode;
  /** Links to the other sign-in pages. */
  readonly footer?: ReactNode;
}

export function AuthCard({ title, about, children, footer }: AuthCardProps) {
  return (
    <div className="auth">
      <h1 tabIndex={-1}>{title}</h1>
      {about === undefined ? null : <p className="page-about">{about}</p>}
      <div className="card">
        <div className="card-body">{children}</div>
      </div>
      {footer === undefined ? null : <div className="auth-footer">{footer}</div>}
    </div>
  );
}
