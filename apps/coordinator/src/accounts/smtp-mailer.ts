/** `SmtpMailer` sends mail through the operator's SMTP server, set by SMTP_URL. */
import { createTransport } from 'nodemailer';
import type { SmtpSettings } from '../config/mail.js';
import { Semaphore } from '../semaphore.js';
import { contentOf, type Mail, type Mailer } from './mailer.js';

interface SmtpOptions {
  /** PEM of the only trusted certificate authority. Default: the authorities that Node.js trusts. */
  readonly authority?: string;
  /** Maximum time to send one mail, without its wait for a connection, in milliseconds. */
  readonly sendMs?: number;
  readonly maxWaiting?: number;
}

/** Maximum concurrent mails, each on its own connection. */
const MAX_SENDING = 4;
/** Maximum mails that wait for a connection. Further mails fail. */
const MAX_WAITING = 200;
const SEND_MS = 20_000;
const MAX_RESPONSE_BYTES = 64 * 1024;

/** Too many mails wait already. Has a `code`, because the log leaves out messages of errors. */
class MailQueueFull extends Error {
  override name = 'MailQueueFull';
  readonly code = 'EMAILQUEUE';
}

export class SmtpMailer implements Mailer {
  readonly #transport: ReturnType<typeof transportOf>;
  readonly #from: string;
  readonly #sendMs: number;
  readonly #maxWaiting: number;
  readonly #connections = new Semaphore(MAX_SENDING);
  #unsentCount = 0;

  constructor(settings: SmtpSettings, options: SmtpOptions = {}) {
    this.#sendMs = options.sendMs ?? SEND_MS;
    this.#maxWaiting = options.maxWaiting ?? MAX_WAITING;
    this.#transport = transportOf(settings, this.#sendMs, options.authority);
    this.#from = settings.from;
  }

  /** Rejects with {@link MailQueueFull} or nodemailer's error. The error's `code` names the cause, such as EAUTH or ETLS. */
  async send(mail: Mail): Promise<void> {
    if (this.#unsentCount >= MAX_SENDING + this.#maxWaiting) throw new MailQueueFull(`${this.#maxWaiting} mails wait for the mail server`);
    this.#unsentCount++;
    try {
      await this.#connections.run(() =>
        this.#transport.sendMail({
          from: this.#from,
          // nodemailer parses a text as a list of addresses, and an object as one address.
          to: { name: '', address: mail.to },
          ...contentOf(mail),
          // Suppresses automatic replies (RFC 3834).
          headers: { 'Auto-Submitted': 'auto-generated' },
          disableFileAccess: true,
          disableUrlAccess: true,
          signal: AbortSignal.timeout(this.#sendMs),
        }),
      );
    } finally {
      this.#unsentCount--;
    }
  }

  /** Connects, upgrades to TLS and signs in without sending mail. Rejects like {@link send}. */
  async verify(): Promise<void> {
    await this.#transport.verify();
  }
}

function transportOf({ host, port, tls, login }: SmtpSettings, timeoutMs: number, authority: string | undefined) {
  return createTransport({
    host,
    port,
    secure: tls === 'implicit',
    requireTLS: tls === 'starttls',
    ignoreTLS: tls === 'none',
    ...(login === null ? {} : { auth: { user: login.user, pass: login.password } }),
    tls: { minVersion: 'TLSv1.2', ...(authority === undefined ? {} : { ca: authority }) },
    connectionTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    socketTimeout: timeoutMs,
    dnsTimeout: timeoutMs,
    maxResponseSize: MAX_RESPONSE_BYTES,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
}
