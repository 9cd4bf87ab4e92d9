/** `readMail` reads the settings of outgoing mail, which is sent by SMTP (SMTP_URL) or through an HTTP service (MAIL_URL). */
import { checked, type Environment, httpUrl, secret, text } from './environment.js';
import { StartupError } from './startup-error.js';

export interface SmtpSettings {
  readonly kind: 'smtp';
  readonly host: string;
  readonly port: number;
  /** `implicit`: TLS from the first byte (RFC 8314). `starttls`: no mail without an upgrade to TLS (RFC 3207). */
  readonly tls: 'implicit' | 'starttls' | 'none';
  readonly login: { readonly user: string; readonly password: string } | null;
  /** Sender, as an address or `Name <address>`. */
  readonly from: string;
}

interface HttpMailSettings {
  readonly kind: 'http';
  /** Address of the service that accepts mail as JSON. */
  readonly url: string;
  readonly token: string | null;
}

export type MailSettings = SmtpSettings | HttpMailSettings;

/** Default ports: RFC 6409 for `smtp:`, RFC 8314 for `smtps:`. */
const PORTS = { 'smtp:': 587, 'smtps:': 465 } as const;
const FROM = /^(?:[^\s<>@,;"]+@[^\s<>@,;"]+|[^<>@,;"\r\n]{1,100} <[^\s<>@,;"]+@[^\s<>@,;"]+>)$/;

/** Null: the coordinator sends no mail. Throws {@link StartupError} that names the invalid setting. */
export function readMail(env: Environment): MailSettings | null {
  const url = httpUrl(env, 'MAIL_URL');
  const smtp = readSmtp(env);
  if (url !== null && smtp !== null) throw new StartupError('MAIL_URL and SMTP_URL are both set: remove one of them.');
  if (smtp !== null) return smtp;
  return url === null ? null : { kind: 'http', url, token: secret(env, 'MAIL_TOKEN', /^\S+$/, 'a token without spaces') };
}

function readSmtp(env: Environment): SmtpSettings | null {
  const value = text(env, 'SMTP_URL');
  const separatePassword = text(env, 'SMTP_PASSWORD');
  if (value === null) {
    if (separatePassword !== null) throw new StartupError('SMTP_PASSWORD needs SMTP_URL.');
    return null;
  }
  const from = checked(
    env,
    'MAIL_FROM',
    (sender) => FROM.test(sender),
    'be an address, or a name and an address such as Example <no-reply@example.com>',
  );
  if (from === null) throw new StartupError('SMTP_URL needs MAIL_FROM, the address from which mail is sent.');
  // No message repeats the URL, which may contain a password.
  const url = /^smtps?:\/\//.test(value) && URL.canParse(value) ? new URL(value) : null;
  if (url === null || url.hostname === '' || !['', '/'].includes(url.pathname) || url.hash !== '') {
    throw new StartupError('SMTP_URL must look like smtp://user:password@host:587 or smtps://user:password@host:465.');
  }
  const isImplicit = url.protocol === 'smtps:';
  const options = [...url.searchParams];
  if (options.some(([name, option]) => name !== 'tls' || option !== 'none') || (isImplicit && options.length > 0)) {
    throw new StartupError('SMTP_URL has an unknown option; the only one is ?tls=none after smtp://, for a server without TLS.');
  }
  const tls = isImplicit ? 'implicit' : options.length > 0 ? 'none' : 'starttls';
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const login = readLogin(url, separatePassword);
  if (login !== null && tls === 'none' && !isLoopback(host)) {
    throw new StartupError('SMTP_URL with ?tls=none would send the password unencrypted to another machine: remove ?tls=none or the user.');
  }
  return { kind: 'smtp', host, port: Number(url.port) || PORTS[isImplicit ? 'smtps:' : 'smtp:'], tls, login, from };
}

function readLogin(url: URL, separatePassword: string | null): SmtpSettings['login'] {
  const [user, inUrl] = [decodePart(url.username), decodePart(url.password)];
  if (inUrl !== '' && separatePassword !== null)
    throw new StartupError('SMTP_URL contains a password and SMTP_PASSWORD is set: remove one of them.');
  const password = separatePassword ?? inUrl;
  if ((user === '') !== (password === '')) {
    throw new StartupError('SMTP_URL needs a user and a password, or neither; the password can also be in SMTP_PASSWORD.');
  }
  return user === '' ? null : { user, password };
}

function decodePart(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw new StartupError('SMTP_URL has a user or password with a % that begins no percent-encoded character.');
  }
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\.\d+\.\d+\.\d+$/.test(host);
}
