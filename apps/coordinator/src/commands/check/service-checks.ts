/** Service part of the command `check`: connects to mail, payments (Stripe), NATS and device management (NanoMDM). */

import { STRIPE_EVENTS } from '../../billing/payments/stripe-events.js';
import { systemClock } from '../../cluster/transport/clock.js';
import { loadNatsClient, NatsConnection } from '../../cluster/transport/nats-connection.js';
import type { Config } from '../../config/config.js';
import type { MailSettings } from '../../config/mail.js';
import { UNKNOWN_AUTHORITY_REMEDY } from '../../config/startup-error.js';
import { causeOf, type Finding, ok, problem, skipped, unreachable, warning } from './finding.js';

/** Maximum duration of a request to a service. Shorter than the limit of a whole check, whose message would hide the cause. */
const TIMEOUT_MS = 6000;

export async function checkMail(mail: MailSettings | null, signal: AbortSignal): Promise<Finding[]> {
  if (mail === null)
    return [warning('no mail: passwords cannot be reset, and nobody is invited or alerted', 'Set SMTP_URL and MAIL_FROM, or MAIL_URL.')];
  return mail.kind === 'smtp' ? checkSmtp(mail) : checkMailService(mail.url, signal);
}

/** Finding by error code: codes of nodemailer and {@link smtpErrorCode}. */
const SMTP_REMEDIES: Readonly<Record<string, readonly [text: string, remedy: string]>> = {
  EAUTH: ['refuses the user or password', 'Correct SMTP_URL or SMTP_PASSWORD.'],
  ETLS: [
    'offers no TLS that can be used',
    'Use smtps://, another port, or a valid certificate; ?tls=none only for a server on this machine.',
  ],
  ESOCKET: ['ended the connection', 'Check host and port; smtps:// is for port 465, smtp:// for 587 and 25.'],
  AUTHORITY: ['has a certificate that is not trusted', UNKNOWN_AUTHORITY_REMEDY],
  CERTIFICATE: ['has a certificate that is not valid', 'Use the name that stands in the certificate, or renew the certificate.'],
  ECONNREFUSED: ['cannot be reached', 'Check host, port and firewall.'],
  ETIMEDOUT: ['does not answer', 'Check host, port and firewall; many hosters block port 25.'],
  EDNS: ['has no address', 'Correct the host in SMTP_URL.'],
  ECONNECTION: ['cannot be reached', 'Check host, port and firewall.'],
};

async function checkSmtp(mail: Extract<MailSettings, { kind: 'smtp' }>): Promise<Finding[]> {
  const { SmtpMailer } = await import('../../accounts/smtp-mailer.js');
  const server = `${mail.host}:${mail.port}`;
  try {
    await new SmtpMailer(mail, { sendMs: TIMEOUT_MS }).verify();
  } catch (error) {
    const code = smtpErrorCode(error);
    const [text, remedy] = SMTP_REMEDIES[code] ?? ['refuses the connection', 'Check the address in SMTP_URL.'];
    return [problem(`the mail server ${server} ${text} (${code})`, remedy)];
  }
  const login = mail.login === null ? 'without login' : 'the login works';
  return [ok(`${server} answers ${mail.tls === 'none' ? 'without TLS' : 'over TLS'}, ${login}; sender ${mail.from}`)];
}

/** nodemailer's error code. ESOCKET and ETLS have several causes, which only the message distinguishes. */
function smtpErrorCode(error: unknown): string {
  const { code, message } = error as { code?: unknown; message?: unknown };
  if (code !== 'ESOCKET' && code !== 'ETLS') return typeof code === 'string' ? code : 'no code';
  // OpenSSL's message texts for the error codes of `isUnknownAuthority`.
  if (/self-signed certificate|unable to (?:get (?:local )?issuer|verify the first) certificate/i.test(String(message))) return 'AUTHORITY';
  if (/certificate/i.test(String(message))) return 'CERTIFICATE';
  return String(message).includes('ECONNREFUSED') ? 'ECONNREFUSED' : code;
}

async function checkMailService(url: string, signal: AbortSignal): Promise<Finding[]> {
  try {
    // Sends no mail. Any answer shows that the service runs.
    const response = await fetch(url, { method: 'OPTIONS', redirect: 'manual', signal });
    await response.body?.cancel();
    return [ok(`the service at ${new URL(url).host} answers; the token is not checked, because no mail is sent`)];
  } catch (error) {
    return [unreachable(`the mail service at ${new URL(url).host}`, error, 'Check MAIL_URL.')];
  }
}

export async function checkPayments({ stripe, development, console: { publicOrigin } }: Config): Promise<Finding[]> {
  if (stripe === null) return [warning('no payments: clients cannot add credits', 'Set STRIPE_SECRET_KEY and STRIPE_WEBHOOK_SECRET.')];
  const findings: Finding[] = [];
  if (!stripe.webhookSecret.startsWith('whsec_')) {
    findings.push(
      problem(
        'STRIPE_WEBHOOK_SECRET is not the signing secret of a webhook',
        "Copy it from the webhook's page in Stripe; it begins with whsec_.",
      ),
    );
  }
  const { stripeClient } = await import('../../billing/payments/stripe-processor.js');
  const client = stripeClient(stripe, { timeout: TIMEOUT_MS, maxNetworkRetries: 0 });
  const statusOf = (error: unknown): unknown => (error instanceof Error && 'statusCode' in error ? error.statusCode : undefined);
  try {
    const { livemode } = await client.balance.retrieve();
    if (!livemode && !development)
      findings.push(warning('STRIPE_SECRET_KEY is a test key: no real money moves', 'Use a live key (sk_live_…) in production.'));
    else findings.push(ok(`Stripe accepts STRIPE_SECRET_KEY (${livemode ? 'live' : 'test'} mode)`));
  } catch (error) {
    const status = statusOf(error);
    if (status === 401)
      return [...findings, problem('Stripe refuses STRIPE_SECRET_KEY', 'Copy the secret key again; it begins with sk_ or rk_.')];
    if (status === 403)
      findings.push(warning('STRIPE_SECRET_KEY is restricted and may not read the balance', 'Give it Checkout, Connect and Transfers.'));
    else
      return [
        ...findings,
        unreachable('Stripe', (error as { detail?: unknown }).detail ?? error, 'Check the network, and STRIPE_API_URL if set.'),
      ];
  }
  if (publicOrigin === null) return findings;
  try {
    const { data } = await client.webhookEndpoints.list({ limit: 100 });
    findings.push(webhookFinding(data, `${publicOrigin}/webhooks/stripe`));
  } catch (error) {
    findings.push(skipped(`the webhooks cannot be listed with this key (${String(statusOf(error) ?? causeOf(error))})`));
  }
  return findings;
}

interface WebhookEndpoint {
  readonly url: string;
  readonly status: string;
  readonly enabled_events: readonly string[];
}

function webhookFinding(endpoints: readonly WebhookEndpoint[], url: string): Finding {
  const endpoint = endpoints.find((candidate) => candidate.url === url);
  if (endpoint === undefined)
    return problem(
      `Stripe has no webhook for ${url}: deposits are not credited`,
      'Add it in Stripe, with the events of docs/operating.md#money.',
    );
  if (endpoint.status !== 'enabled') return problem(`the webhook ${url} is ${endpoint.status} at Stripe`, 'Enable it.');
  const { enabled_events: events } = endpoint;
  const missing = events.includes('*') ? [] : STRIPE_EVENTS.filter((event) => !events.includes(event));
  return missing.length === 0
    ? ok(`Stripe sends every needed event to ${url}`)
    : problem(`the webhook lacks ${missing.join(', ')}`, 'Add these events in Stripe.');
}

export async function checkCluster({ cluster }: Config): Promise<Finding[]> {
  if (cluster === null) return [skipped('NATS_URL is not set: this coordinator has no peers')];
  const client = await loadNatsClient();
  const findings: Finding[] = [];
  for (const url of cluster.servers) {
    const server = new URL(url).host;
    try {
      const connection = await NatsConnection.dial(client, {
        url,
        name: `coordinator ${cluster.id} check`,
        credentials: {
          ...(cluster.nkeySeed === null ? {} : { nkeySeed: cluster.nkeySeed }),
          ...(cluster.certificateAuthorityFile === null ? {} : { tls: { caFile: cluster.certificateAuthorityFile } }),
        },
        timeoutMs: TIMEOUT_MS / 2,
        clock: systemClock,
      });
      connection.close();
      findings.push(ok(`${server} accepts this coordinator as ${cluster.id}`));
    } catch (error) {
      const text = error instanceof Error ? error.message.slice(0, 200) : 'unknown error';
      findings.push(problem(`NATS at ${server}: ${text}`, 'Check NATS_URL, NATS_NKEY_FILE and NATS_CA_FILE (docs/cluster.md).'));
    }
  }
  return findings;
}

export async function checkDeviceManagement({ deviceManagement: settings }: Config, signal: AbortSignal): Promise<Finding[]> {
  if (settings === null) return [skipped('MDM_URL is not set: no devices are managed')];
  const host = new URL(settings.url).host;
  try {
    const authorization = `Basic ${Buffer.from(`nanomdm:${settings.apiKey}`).toString('base64')}`;
    // A GET of the push certificate changes nothing. NanoMDM checks the API key before it answers.
    const response = await fetch(`${settings.url}/v1/pushcert`, { headers: { authorization }, redirect: 'manual', signal });
    await response.body?.cancel();
    if (response.status === 401) return [problem(`the management server ${host} refuses MDM_API_KEY`, 'Use the value of its -api option.')];
    return [ok(`the management server ${host} answers, and accepts MDM_API_KEY`)];
  } catch (error) {
    return [unreachable(`the management server ${host}`, error, 'Check MDM_URL.')];
  }
}
