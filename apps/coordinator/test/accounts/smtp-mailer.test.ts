/** `SmtpMailer` against a real SMTP server that runs in this process. */
import type { AddressInfo } from 'node:net';
import { createServer, type Server } from 'node:net';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { CertificateAuthority, type KeyAndCertificate } from '../../../../scripts/network/cluster/certificate-authority.js';
import { SmtpMailer } from '../../src/accounts/smtp-mailer.js';
import { readMail, type SmtpSettings } from '../../src/config/mail.js';
import { until } from '../support/harness.js';

const MAIL = { kind: 'reset_password', to: 'ada@example.com', link: 'https://gateway.example/reset?token=a=b' } as const;

let authority: string;
let server: KeyAndCertificate;
beforeAll(async () => {
  const made = await CertificateAuthority.create(Date.now());
  authority = made.pem.certificate;
  server = await made.issue(['127.0.0.1', 'localhost'], Date.now());
});

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

interface Received {
  readonly isEncrypted: boolean;
  readonly user: string | undefined;
  readonly from: string;
  readonly to: readonly string[];
  readonly text: string;
}

/** Starts a server that accepts Ada's password. Returns its port and the received mails. */
async function listen(options: SMTPServerOptions = {}) {
  const received: Received[] = [];
  const smtp = new SMTPServer({
    key: server.key,
    cert: server.certificate,
    logger: false,
    closeTimeout: 0,
    authMethods: ['PLAIN'],
    onAuth: ({ username, password }, _session, done) =>
      username === 'ada' && password === 'p@ss word' ? done(null, { user: username }) : done(new Error('no such user')),
    onRcptTo: ({ address }, _session, done) =>
      address.startsWith('unknown') ? done(Object.assign(new Error('no such mailbox'), { responseCode: 550 })) : done(),
    onData: (stream, session, done) => {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () => {
        const { mailFrom, rcptTo } = session.envelope;
        received.push({
          isEncrypted: session.secure === true,
          user: session.user,
          from: mailFrom === false ? '' : mailFrom.address,
          to: rcptTo.map(({ address }) => address),
          text: Buffer.concat(chunks).toString(),
        });
        done();
      });
    },
    ...options,
  });
  // Ignored, because a client that ends a handshake is an error of one connection, not of the server.
  smtp.on('error', () => {});
  await new Promise<void>((resolve) => smtp.listen(0, '127.0.0.1', resolve));
  closing.push(() => new Promise((resolve) => smtp.close(resolve)));
  return { smtp, received, port: (smtp.server.address() as AddressInfo).port };
}

function mailer(url: string, options: { sendMs?: number; maxWaiting?: number; password?: string } = {}): SmtpMailer {
  const { password, ...more } = options;
  const env = { SMTP_URL: url, SMTP_PASSWORD: password, MAIL_FROM: 'Example Network <no-reply@example.com>' };
  return new SmtpMailer(readMail(env) as SmtpSettings, { authority, ...more });
}

describe('mail by SMTP', () => {
  it('upgrades to TLS, signs in, and sends plain text', async () => {
    const { port, received } = await listen();
    const sender = mailer(`smtp://ada@127.0.0.1:${port}`, { password: 'p@ss word' });
    await sender.verify();
    expect(received).toEqual([]);
    await sender.send(MAIL);
    expect(received).toMatchObject([{ isEncrypted: true, user: 'ada', from: 'no-reply@example.com', to: ['ada@example.com'] }]);
    const { text } = received[0] as Received;
    expect(text).toMatch(/^From: Example Network <no-reply@example.com>\r\nTo: ada@example.com\r\nSubject: Choose a new password\r\n/m);
    expect(text).toMatch(/^Auto-Submitted: auto-generated\r\n/m);
    expect(text).toMatch(/^Content-Type: text\/plain/m);
    expect(text).toContain('https://gateway.example/reset?token=a=b');
  });

  it('uses TLS from the first byte with smtps', async () => {
    const { port, received } = await listen({ secure: true });
    await mailer(`smtps://ada:p%40ss%20word@localhost:${port}`).send(MAIL);
    expect(received).toMatchObject([{ isEncrypted: true, user: 'ada' }]);
  });

  it('sends to one recipient, for every content of the address', async () => {
    const { port, received } = await listen({ authOptional: true });
    await mailer(`smtp://127.0.0.1:${port}`)
      .send({ ...MAIL, to: 'ada@example.com, eve@example.com' })
      .catch(() => {});
    await mailer(`smtp://127.0.0.1:${port}`)
      .send({ ...MAIL, to: 'ada@example.com\r\nBcc: eve@example.com' })
      .catch(() => {});
    expect(received.flatMap(({ to }) => to)).not.toContain('eve@example.com');
    expect(received.filter(({ text }) => /^Bcc:/im.test(text))).toEqual([]);
  });

  it('rejects with the reason: login, recipient, no TLS, another certificate', async () => {
    const { port, received } = await listen({ authOptional: true });
    await expect(mailer(`smtp://ada:wrong@127.0.0.1:${port}`).send(MAIL)).rejects.toMatchObject({ code: 'EAUTH', responseCode: 535 });
    await expect(mailer(`smtp://ada:wrong@127.0.0.1:${port}`).verify()).rejects.toMatchObject({ code: 'EAUTH' });
    const refused = mailer(`smtp://127.0.0.1:${port}`).send({ ...MAIL, to: 'unknown@example.com' });
    await expect(refused).rejects.toMatchObject({ code: 'EENVELOPE', responseCode: 550 });
    const plain = await listen({ hideSTARTTLS: true, disabledCommands: ['STARTTLS'], authOptional: true, allowInsecureAuth: true });
    await expect(mailer(`smtp://ada:p%40ss%20word@127.0.0.1:${plain.port}`).send(MAIL)).rejects.toMatchObject({ code: 'ETLS' });
    const settings = readMail({ SMTP_URL: `smtp://127.0.0.1:${port}`, MAIL_FROM: 'a@example.com' }) as SmtpSettings;
    await expect(new SmtpMailer(settings).send(MAIL)).rejects.toMatchObject({ code: 'ESOCKET' });
    expect([...received, ...plain.received]).toEqual([]);
    await mailer(`smtp://127.0.0.1:${plain.port}?tls=none`).send(MAIL);
    expect(plain.received).toMatchObject([{ isEncrypted: false, user: undefined }]);
  });

  it('gives up on a server that accepts connections and says nothing', async () => {
    const silent: Server = createServer();
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    closing.push(() => new Promise((resolve) => void silent.close(() => resolve())));
    const url = `smtp://127.0.0.1:${(silent.address() as AddressInfo).port}`;
    await expect(mailer(url, { sendMs: 50 }).send(MAIL)).rejects.toMatchObject({ code: expect.stringMatching(/^(ETIMEDOUT|EABORT)$/) });
  });

  it('opens four connections at most, and refuses mail beyond the queue', async () => {
    let finish: () => void = () => {};
    const released = new Promise<void>((resolve) => {
      finish = resolve;
    });
    let maxOpen = 0;
    const { port, smtp, received } = await listen({
      authOptional: true,
      onConnect: (_session, done) => {
        maxOpen = Math.max(maxOpen, smtp.connections.size);
        void released.then(() => done());
      },
    });
    const sender = mailer(`smtp://127.0.0.1:${port}?tls=none`, { maxWaiting: 3 });
    const accepted = Array.from({ length: 7 }, () => sender.send(MAIL));
    await expect(sender.send(MAIL)).rejects.toMatchObject({ code: 'EMAILQUEUE' });
    await until(() => maxOpen === 4);
    finish();
    await Promise.all(accepted);
    await sender.send(MAIL);
    expect([received.length, maxOpen]).toEqual([8, 4]);
  });
});
