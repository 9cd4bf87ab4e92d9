/** `Button` and `LinkButton`. While `busy`, a button retains size and focus, announces its state and ignores clicks. */
import type { ButtonHTMLAttributes, ReactNode } from 'react';
import { Link } from 'wouter';

interface ButtonProps extends Omit<ButtonHTMLAttributes<HTMLButtonElement>, 'className'> {
  readonly kind?: 'primary' | 'secondary' | 'quiet' | 'danger';
  readonly size?: 'normal' | 'small';
  readonly busy?: boolean;
  readonly icon?: ReactNode;
}

export function Button({
  kind = 'secondary',
  size = 'normal',
  busy = false,
  icon,
  type = 'button',
  children,
  onClick,
  ...rest
}: ButtonProps) {
  return (
    <button
      {...rest}
      type={type}
      className="button"
      data-kind={kind}
      data-size={size}
      data-busy={busy || undefined}
      aria-busy={busy || undefined}
      aria-disabled={busy || undefined}
      onClick={(event) => {
        if (busy) event.preventDefault();
        else onClick?.(event);
      }}
    >
      {busy ? <span className="spinner" aria-hidden="true" /> : icon}
      <span className="button-text">{children}</span>
    </button>
  );
}

interface LinkButtonProps {
  readonly href: string;
  readonly kind?: 'primary' | 'secondary' | 'quiet';
  readonly size?: 'normal' | 'small';
  readonly icon?: ReactNode;
  readonly children: ReactNode;
}

/** Link styled as a button, for navigation only. */
export function LinkButton({ href, kind = 'primary', size = 'normal', icon, children }: LinkButtonProps) {
  return (
    <Link href={href} className="button" data-kind={kind} data-size={size}>
      {icon}
      <span className="button-text">{children}</span>
    </Link>
  );
}
