/** `SmtpMailer` sends mail through the operator's SMTP server. */
import { createTransport } from 'nodemailer';
import type { SmtpSettings } from '../config/mail.js';
import { Semaphore } from '../semaphore.js';
import { contentOf, type Mail, type Mailer } from './mailer.js';

interface SmtpOptions {
  /** PEM of the authority of the server's certificate; absent: those of Node.js. */
  readonly authority?: string;
  /** Maximum time from the connection to the accepted mail, in milliseconds. */
  readonly sendMs?: number;
  readonly maxWaiting?: number;
}

/** Mails that are being sent at once, each on a connection of its own. */
const MAX_SENDING = 4;
/** Mails that wait for a connection. More are refused: the server accepts them too slowly. */
const MAX_WAITING = 200;
const SEND_MS = 20_000;
/** Maximum answer of the server that is read, in bytes. */
const MAX_RESPONSE_BYTES = 64 * 1024;

/** The queue is full. `code` appears in the log in place of the message. */
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
  /** Mails that are being sent or wait. */
  #unsent = 0;

  constructor(settings: SmtpSettings, options: SmtpOptions = {}) {
    this.#sendMs = options.sendMs ?? SEND_MS;
    this.#maxWaiting = options.maxWaiting ?? MAX_WAITING;
    this.#transport = transportOf(settings, this.#sendMs, options.authority);
    this.#from = settings.from;
  }

  /** Rejects with the error of the server or connection; its `code` is one of nodemailer's, such as EAUTH, ETLS or EENVELOPE. */
  async send(mail: Mail): Promise<void> {
    if (this.#unsent >= MAX_SENDING + this.#maxWaiting) throw new MailQueueFull(`${this.#maxWaiting} mails wait for the mail server`);
    this.#unsent++;
    try {
      await this.#connections.run(() =>
        this.#transport.sendMail({
          from: this.#from,
          // An object, because a text would be parsed as a list of addresses.
          to: { name: '', address: mail.to },
          ...contentOf(mail),
          // RFC 3834: no automatic replies.
          headers: { 'Auto-Submitted': 'auto-generated' },
          disableFileAccess: true,
          disableUrlAccess: true,
          signal: AbortSignal.timeout(this.#sendMs),
        }),
      );
    } finally {
      this.#unsent--;
    }
  }

  /** Connects, upgrades to TLS and signs in, without sending. Rejects as {@link send} does. */
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
