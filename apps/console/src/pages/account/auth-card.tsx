/** Elements and validation rules that the sign-in pages and the account page share. */
import './account.css';
import type { ComponentProps, ReactNode } from 'react';
import { useSettings } from '../../api/session.js';
import { Note } from '../../ui/feedback/note.js';
import { Field } from '../../ui/forms/field.js';

interface AuthCardProps {
  readonly title: string;
  readonly about?: ReactNode;
  readonly children: ReactNode;
  /** Links to the other sign-in pages. */
  readonly footer?: ReactNode;
}

/** Frame of the sign-in pages: one narrow card with one form. */
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

/** Note about a link sent by e-mail. */
export function MailNote({ sent }: { readonly sent: string }) {
  const settings = useSettings();
  return (
    <Note tone="good" title="Check your email.">
      <p>{sent}</p>
      {settings?.mail_in_log ? (
        <p>
          This coordinator runs in development mode and sends no email: the link is in its log, in the line with <code>"msg":"mail"</code>.
        </p>
      ) : null}
    </Note>
  );
}

/** Catches only typing errors. The verification e-mail proves the address. */
export const EMAIL_PATTERN = { value: /^\S+@\S+\.\S+$/, message: 'Enter a valid email address.' };

/** `minCharacters`: from the settings of the coordinator. */
export function newPasswordRules(minCharacters: number) {
  return {
    required: 'Choose a password.',
    minLength: { value: minCharacters, message: `A password has at least ${minCharacters} characters.` },
    maxLength: { value: 128, message: 'A password has at most 128 characters.' },
  };
}

/** Rules for the password with which the user confirms a change. */
export const CONFIRMING_PASSWORD_RULES = { required: 'Enter your password to continue.' };

/** Field for the current password. */
export function PasswordField(props: ComponentProps<typeof Field>) {
  return <Field type="password" autoComplete="current-password" {...props} />;
}

/** Field for a new password. `minCharacters`: from the settings of the coordinator. */
export function NewPasswordField({ minCharacters, ...props }: ComponentProps<typeof Field> & { readonly minCharacters: number }) {
  return <Field type="password" autoComplete="new-password" hint={`At least ${minCharacters} characters.`} {...props} />;
}
