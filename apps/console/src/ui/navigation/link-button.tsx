/** Link styled as a button, for navigation only. */
import type { ReactNode } from 'react';
import { Link } from 'wouter';

interface LinkButtonProps {
  readonly href: string;
  readonly kind?: 'primary' | 'secondary' | 'quiet';
  readonly size?: 'normal' | 'small';
  readonly icon?: ReactNode;
  readonly children: ReactNode;
}

export function LinkButton({ href, kind = 'primary', size = 'normal', icon, children }: LinkButtonProps) {
  return (
    <Link href={href} className="button" data-kind={kind} data-size={size}>
      {icon}
      <span className="button-text">{children}</span>
    </Link>
  );
}
