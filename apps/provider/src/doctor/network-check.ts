/** `reachCoordinator` checks whether the coordinator answers, and if not, whether name, connection, certificate or server is at fault. */
import { lookup } from 'node:dns/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { type Finding, note, ok, problem, skipped } from './check.js';

const LOOKUP_MS = 1_500;
const REACH_MS = 2_500;
const MAX_BYTES = 64 << 10;

export interface Reached {
  readonly findings: readonly Finding[];
  /** This machine's clock minus the coordinator's `Date` header, in milliseconds; null without the header. */
  readonly skewMs: number | null;
}

/** Never rejects. `url` is null if the coordinator is unknown. */
export async function reachCoordinator(url: string | null, env: NodeJS.ProcessEnv = process.env): Promise<Reached> {
  if (url === null) {
    return { findings: [skipped('no coordinator is set; set it in config.toml, or use --coordinator')], skewMs: null };
  }
  const { hostname } = new URL(url);
  const name = hostname.replace(/^\[|\]$/g, '');
  const found = await Promise.race([
    lookup(name).then(
      () => null,
      (error: NodeJS.ErrnoException) => error.code ?? 'unknown',
    ),
    delay(LOOKUP_MS, 'no answer', { ref: false }),
  ]);
  if (found !== null) {
    const remedy = 'Check the address of the coordinator, the network of this Mac, and its DNS servers (System Settings, Network).';
    return { findings: [problem(`the name ${name} is not found (${found})`, remedy)], skewMs: null };
  }
  try {
    const response = await fetch(`${url}/health`, { signal: AbortSignal.timeout(REACH_MS), redirect: 'manual' });
    const isCoordinator = isHealth(await beginningOf(response));
    const date = Date.parse(response.headers.get('date') ?? '');
    const skewMs = Number.isNaN(date) || !isCoordinator ? null : Date.now() - date;
    return { findings: [answerFinding(url, response.status, isCoordinator), ...proxyFindings(env)], skewMs };
  } catch (error) {
    return { findings: [failureFinding(url, error), ...proxyFindings(env)], skewMs: null };
  }
}

function answerFinding(url: string, status: number, isCoordinator: boolean): Finding {
  const isOk = status >= 200 && status < 300;
  if (isOk && isCoordinator) return ok(`the coordinator ${url} answers`);
  const text = `the coordinator ${url} answers with status ${status}`;
  if (isOk || (status >= 300 && status < 400))
    return problem(
      isOk ? `${text}, but not as a coordinator` : text,
      'A captive portal, such as a Wi-Fi sign-in page, answers instead; or the address is wrong.',
    );
  return problem(text, 'Check the address, or wait until the coordinator is up again.');
}

/** Reads a bounded part, because the response may come from another server. */
async function beginningOf(response: Response): Promise<string> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of response.body ?? []) {
    parts.push(part as Uint8Array);
    bytes += (part as Uint8Array).length;
    if (bytes > MAX_BYTES) break;
  }
  return Buffer.concat(parts).toString('utf8');
}

function isHealth(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && 'status' in value;
  } catch {
    return false;
  }
}

function failureFinding(url: string, error: unknown): Finding {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const { code: word } = cause as NodeJS.ErrnoException;
  const code = typeof word === 'string' ? word : cause instanceof Error ? cause.name : 'unknown';
  const text = `the coordinator ${url} cannot be reached (${code})`;
  if (code === 'TimeoutError' || code === 'UND_ERR_CONNECT_TIMEOUT' || code === 'ETIMEDOUT') {
    return problem(`the coordinator ${url} does not answer`, 'Check the network and firewall of this Mac; packets are dropped.');
  }
  if (/^(?:UNABLE_TO_|(?:DEPTH_ZERO_)?SELF_SIGNED_)/.test(code)) {
    const remedy =
      'The certificate is of an unknown authority: start the agent with NODE_EXTRA_CA_CERTS=FILE, its root, if the operator has one of its own.';
    return problem(text, remedy);
  }
  if (/CERT|TLS|SSL|ALTNAME/.test(code)) {
    return problem(text, 'The certificate is invalid: check the clock, and whether this network intercepts connections.');
  }
  return problem(text, 'Check the network of this Mac, its firewall, and the address of the coordinator.');
}

/** The agent connects directly and ignores proxy variables. */
function proxyFindings(env: NodeJS.ProcessEnv): Finding[] {
  const set = ['HTTPS_PROXY', 'https_proxy', 'ALL_PROXY', 'all_proxy'].find((name) => env[name]);
  if (set === undefined) return [];
  return [
    note(
      `${set} is set, but the agent does not use proxies`,
      'If this network requires the proxy, the coordinator is unreachable from here.',
    ),
  ];
}
