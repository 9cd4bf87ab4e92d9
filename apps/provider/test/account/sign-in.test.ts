/** Device flow against all kinds of coordinators, and the daemon's link client. */
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import type { ProviderMessage } from '@inference/protocol';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { listenLocally } from '../../../../test/support/local-server.js';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { accountPath, forgetAccount, readAccount, writeAccount } from '../../src/account/account-file.js';
import { coordinatorAddress, requestCoordinator } from '../../src/account/coordinator-http.js';
import { awaitGrant, type DeviceCode, type GrantOutcome, requestCode } from '../../src/account/device-flow.js';
import { type ActivityHour, DutyCycleRecorder, readActivity } from '../../src/account/duty-cycle.js';
import { viewOf } from '../../src/account/earnings.js';
import { LinkClient } from '../../src/account/link-client.js';
import { browserCommand } from '../../src/cli/commands/login.js';
import { widthOf } from '../../src/cli/output/columns.js';
import { earningsLines } from '../../src/cli/output/earnings-text.js';
import type { LinkStatus } from '../../src/control/link-status.js';

const TOKEN = `machine-${'a'.repeat(43)}`;
let folder: string;
beforeEach(() => {
  folder = temporaryDirectory('sign-in');
});

type Reply = {
  readonly status?: number;
  readonly json?: unknown;
  readonly text?: string;
  readonly headers?: Record<string, string>;
  readonly hang?: true;
};

/** Coordinator that replays given replies in order; the last one repeats. */
class Script {
  readonly asked: { readonly path: string; readonly form: Record<string, string> }[] = [];
  readonly #replies: Reply[];
  readonly #server: Server;
  address = '';

  private constructor(replies: Reply[]) {
    this.#replies = replies;
    this.#server = createServer((request, response) => void this.#answer(request, response));
  }

  static async start(...replies: Reply[]): Promise<Script> {
    const script = new Script(replies);
    script.address = await listenLocally(script.#server);
    return script;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = '';
    for await (const part of request) body += part;
    this.asked.push({ path: request.url ?? '', form: Object.fromEntries(new URLSearchParams(body)) });
    const reply = this.#replies.length > 1 ? this.#replies.shift() : this.#replies[0];
    if (reply?.hang) return;
    if (reply === undefined || reply.status === 0) {
      request.socket.destroy();
      return;
    }
    response.writeHead(reply.status ?? 200, reply.headers ?? {}).end(reply.text ?? JSON.stringify(reply.json));
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

const error = (name: string): Reply => ({ status: 400, json: { error: name, error_description: 'for people' } });
const code: DeviceCode = {
  deviceCode: 'd',
  userCode: 'WDJB-MJHT',
  verificationUri: 'https://console.example/link',
  verificationUriComplete: 'https://console.example/link?code=WDJB-MJHT',
  expiresInMs: 600_000,
  intervalMs: 5000,
};

describe('a sign-in', () => {
  /** Awaits a grant with a clock that only pauses advance. */
  async function grant(
    ...replies: Reply[]
  ): Promise<{ outcome: GrantOutcome; pauses: number[]; troubles: (string | null)[]; script: Script }> {
    const script = await Script.start(...replies);
    const pauses: number[] = [];
    const troubles: (string | null)[] = [];
    let now = 0;
    const clock = {
      now: () => now,
      pause: async (ms: number): Promise<void> => {
        pauses.push(ms);
        now += ms;
      },
    };
    const onPollError = (sentence: string | null): void => void troubles.push(sentence);
    try {
      const outcome = await awaitGrant(script.address, code, { signal: new AbortController().signal, onPollError, clock });
      return { outcome, pauses, troubles, script };
    } finally {
      script.close();
    }
  }

  it("polls at the coordinator's interval, and permanently slower after slow_down", async () => {
    const { outcome, pauses, script } = await grant(
      error('authorization_pending'),
      error('slow_down'),
      error('authorization_pending'),
      error('slow_down'),
      { json: { access_token: TOKEN, token_type: 'Bearer' } },
    );
    expect(outcome).toEqual({ kind: 'granted', token: TOKEN });
    expect(pauses).toEqual([5000, 5000, 10_000, 10_000, 15_000]);
    expect(script.asked[0]).toEqual({
      path: '/oauth/token',
      form: { grant_type: 'urn:ietf:params:oauth:grant-type:device_code', client_id: 'inference-provider', device_code: 'd' },
    });
  });

  it('ends on refusal, expiry and permanent errors', async () => {
    expect((await grant(error('access_denied'))).outcome).toEqual({ kind: 'denied' });
    expect((await grant(error('expired_token'))).outcome).toEqual({ kind: 'expired' });
    expect((await grant(error('invalid_grant'))).outcome).toEqual({ kind: 'refused', message: 'for people' });
    expect((await grant({ json: { access_token: 'with spaces in it' } })).outcome).toMatchObject({ kind: 'refused' });
  });

  it('keeps polling while the coordinator is unreachable, broken, or behind a captive portal', async () => {
    const { outcome, pauses, troubles } = await grant(
      { status: 0 },
      { status: 500, json: { error: 'server_error' } },
      { text: '<html>Welcome to our hotel</html>' },
      { status: 302, text: '', headers: { location: 'https://elsewhere.example/' } },
      { status: 429, json: { error: 'temporarily_unavailable' }, headers: { 'retry-after': '90' } },
      error('authorization_pending'),
      { json: { access_token: TOKEN } },
    );
    expect(outcome.kind).toBe('granted');
    expect(pauses).toEqual([5000, 10_000, 20_000, 30_000, 30_000, 90_000, 5000]);
    expect(troubles[0]).toContain('cannot be reached');
    expect(troubles[2]).toContain('no JSON');
    expect(troubles.slice(-2)).toEqual([null, null]);
  });

  it('gives up when the code has expired, for every wall-clock time', async () => {
    const { outcome, pauses } = await grant({ status: 503, text: 'down' });
    expect(outcome).toEqual({ kind: 'expired' });
    expect(pauses.reduce((all, ms) => all + ms, 0)).toBe(600_000);
  });

  it('fails with a sentence if the server is no coordinator', async () => {
    const machine = { machineName: 'attic', chipName: 'M9' };
    const { signal } = new AbortController();
    const ask = async (reply: Reply): Promise<string> => {
      const script = await Script.start(reply);
      try {
        return await requestCode(script.address, machine, signal).then(
          () => 'taken',
          (problem: Error) => `${(problem as Error & { kind: string }).kind}: ${problem.message.replace(script.address, 'IT')}`,
        );
      } finally {
        script.close();
      }
    };
    expect(await ask({ text: '<html>' })).toBe(
      'invalid_answer: IT answered with status 200 and no JSON; check that it is the address of a coordinator',
    );
    expect(await ask({ status: 502, text: '<html>' })).toMatch(/^unreachable: /);
    expect(await ask({ status: 404, json: { error: 'invalid_request' } })).toMatch(/^refused: .* does not support linking machines$/);
    expect(await ask({ status: 400, json: { error: 'invalid_client', error_description: 'No such client.' } })).toBe(
      'refused: No such client.',
    );
    expect(await ask({ json: { device_code: 'd', user_code: 'x', verification_uri: 'javascript:alert(1)', expires_in: 1 } })).toMatch(
      /^invalid_answer: /,
    );
    expect(
      await ask({ json: { device_code: 'd', user_code: 'WDJB-\u001b[2J', verification_uri: 'https://c.example', expires_in: 1 } }),
    ).toMatch(/^invalid_answer: /);
    const script = await Script.start({ hang: true });
    await expect(requestCoordinator(script.address, '/', { ms: 50 })).rejects.toMatchObject({
      kind: 'unreachable',
      message: expect.stringContaining('in time'),
    });
    script.close();
  });

  it('opens a browser only on a local Mac terminal, and only for web addresses', () => {
    const environment = { platform: 'darwin', env: {}, isTerminal: true } as const;
    expect(browserCommand('https://c.example/link?code=A', environment)).toEqual(['/usr/bin/open', 'https://c.example/link?code=A']);
    expect(browserCommand('file:///Applications', environment)).toBeNull();
    expect(browserCommand('https://c.example', { ...environment, isTerminal: false })).toBeNull();
    expect(browserCommand('https://c.example', { ...environment, env: { SSH_CONNECTION: '1.2.3.4' } })).toBeNull();
    expect(browserCommand('https://c.example', { ...environment, platform: 'linux' })).toBeNull();
  });

  it('accepts coordinator addresses in all forms of the settings', () => {
    expect(coordinatorAddress('wss://c.example/base/')).toBe('https://c.example/base');
    expect(coordinatorAddress('http://127.0.0.1:8080')).toBe('http://127.0.0.1:8080');
    for (const none of ['', 'c.example', 'ftp://c.example', 'file:///x']) expect(coordinatorAddress(none)).toBeNull();
  });
});

describe('the file of the sign-in', () => {
  const account = { coordinator: 'https://c.example', token: TOKEN, signed_in_at: 1 };

  it('is its owner’s alone, whole or not there', () => {
    expect(readAccount(folder)).toBeNull();
    writeAccount(folder, account);
    expect(statSync(accountPath(folder)).mode & 0o777).toBe(0o600);
    expect(readdirSync(folder)).toEqual(['account.json']);
    expect(readAccount(folder)).toEqual(account);
    writeAccount(folder, { ...account, signed_in_at: 2 });
    expect(readAccount(folder)?.signed_in_at).toBe(2);
    forgetAccount(folder);
    forgetAccount(folder);
    expect(readAccount(folder)).toBeNull();
  });

  it('reports damage with a remedy', () => {
    for (const text of ['', '{', '{"coordinator":"https://c.example"}', JSON.stringify({ ...account, coordinator: 'file:///x' })]) {
      writeFileSync(accountPath(folder), text);
      expect(() => readAccount(folder)).toThrow(/is damaged. Run "inference-provider login"/);
    }
    rmSync(accountPath(folder));
    mkdirSync(accountPath(folder));
    expect(() => readAccount(folder)).toThrow(/cannot be read/);
  });
});

describe('the link of a daemon', () => {
  const coordinator = 'https://c.example';
  const sent: ProviderMessage[] = [];
  const seen: LinkStatus[] = [];
  let isRegistered = true;
  let link: LinkClient | null = null;
  const open = (): LinkClient => {
    const send = (message: ProviderMessage): boolean => {
      if (isRegistered) sent.push(message);
      return isRegistered;
    };
    link = new LinkClient({ dataDir: folder, coordinator, send, onChange: (status) => void seen.push(status) });
    return link;
  };
  beforeEach(() => {
    sent.length = 0;
    seen.length = 0;
    isRegistered = true;
  });
  afterEach(() => link?.stop());
  const signIn = (at = coordinator): void => writeAccount(folder, { coordinator: at, token: TOKEN, signed_in_at: 1 });

  it('sends the token on every connection and stores the answer', async () => {
    signIn();
    const daemon = open();
    expect(daemon.status.state).toBe('waiting');
    daemon.sendToken();
    expect(sent).toEqual([{ type: 'link', token: TOKEN }]);
    daemon.onAnswer({ type: 'linked', account_id: 'a', account_name: 'Ada' });
    expect(daemon.status).toEqual({ state: 'linked', account_name: 'Ada', reason: null, remedy: null });
    daemon.disconnected();
    daemon.sendToken();
    expect(sent).toHaveLength(2);
    daemon.onAnswer({ type: 'link_refused', reason: 'token_revoked', remedy: 'Run login.' });
    expect(daemon.status).toMatchObject({ state: 'refused', reason: 'token_revoked', remedy: 'Run login.' });
  });

  it('serves without an account and reports the remedy', () => {
    expect(open().status).toMatchObject({ state: 'none', remedy: expect.stringContaining('inference-provider login') });
    link?.sendToken();
    expect(sent).toEqual([]);
  });

  it('sends a token only to its own coordinator', () => {
    signIn('https://another.example');
    open().sendToken();
    expect(sent).toEqual([]);
    expect(link?.status).toMatchObject({ state: 'other_coordinator', remedy: expect.stringContaining('https://another.example') });
  });

  it('applies a sign-in and a sign-out while running', async () => {
    const daemon = open();
    signIn();
    daemon.sendToken();
    const settled = daemon.settled(60_000);
    daemon.onAnswer({ type: 'linked', account_id: 'a', account_name: 'Ada' });
    expect((await settled).state).toBe('linked');
    forgetAccount(folder);
    daemon.sendToken();
    expect(daemon.status.state).toBe('none');
    // A late answer to the earlier token is ignored.
    daemon.onAnswer({ type: 'linked', account_id: 'a', account_name: 'Ada' });
    expect(daemon.status.state).toBe('none');
    expect(seen.map(({ state }) => state)).toEqual(['none', 'waiting', 'linked', 'none']);
  });

  it('waits for the connection, and reports an unusable file', () => {
    signIn();
    isRegistered = false;
    const daemon = open();
    daemon.sendToken();
    expect(daemon.status.state).toBe('waiting');
    writeFileSync(accountPath(folder), 'not JSON');
    daemon.sendToken();
    expect(daemon.status).toMatchObject({ state: 'unreadable', remedy: expect.stringContaining('damaged') });
  });
});

describe('earnings', () => {
  const row = (day: string, model: string, earned: number) => ({
    day,
    model,
    requests: 2,
    prompt_tokens: 100,
    completion_tokens: 50,
    images: 0,
    earned_micro_usd: earned,
  });
  const earnings = {
    object: 'machine.earnings' as const,
    provider_id: '0'.repeat(32) as never,
    account_name: '漢字'.repeat(60),
    time_zone: 'Europe/Berlin',
    from: '2026-10-17',
    to: '2026-10-26',
    data: [
      row('2026-10-17', 'pico', 5),
      row('2026-10-25', 'a/very-long-model-name-that-goes-on-and-on-and-on:Q4_K_M', 7),
      row('2026-10-26', 'pico', 11),
    ],
    account: { machines: 2, earned_total_micro_usd: 12_345_678, withdrawable_micro_usd: 23 },
    server_time: '2026-10-26T12:00:00.000Z',
  };

  it("are summed per day of the owner's zone, including a day of 25 hours", () => {
    // Summer time ended on the 25th at 01:00 UTC. The day's first hour began on the 24th at 22:00 UTC, its last ended at 23:00 UTC.
    const hour = (iso: string, connected_ms: number, busy_ms: number): ActivityHour => ({
      hour: Date.parse(iso) / 3_600_000,
      connected_ms,
      busy_ms,
    });
    const activity = [
      hour('2026-10-24T22:00:00Z', 1000, 1000),
      hour('2026-10-25T22:00:00Z', 3000, 0),
      hour('2026-10-25T23:00:00Z', 1000, 500),
    ];
    const view = viewOf(earnings, activity);
    expect(view.today).toEqual({ requests: 2, tokens: 150, images: 0, earned: 11, duty: 0.5 });
    expect(view.week).toMatchObject({ earned: 18, requests: 4, duty: 0.3 });
    expect(view.days).toHaveLength(10);
    expect(view.days[1]).toEqual({ day: '2026-10-25', requests: 2, tokens: 150, images: 0, earned: 7, duty: 0.25 });
    expect(view.days[2]).toMatchObject({ day: '2026-10-24', requests: 0, duty: null });
    expect(view.models.map(({ model, earned }) => [model.slice(0, 6), earned])).toEqual([
      ['pico', 16],
      ['a/very', 7],
    ]);
  });

  it('is read in 80 columns', () => {
    const lines = earningsLines(earnings, viewOf(earnings, []));
    for (const line of lines) expect(widthOf(line)).toBeLessThanOrEqual(80);
    const text = lines.join('\n');
    expect(text).toMatch(/^Today +\$0\.000011 +2 +150 +-$/m);
    expect(text).toMatch(/^Last 7 days +\$0\.000018 +4 +300 +-$/m);
    expect(text).toMatch(/^ {2}Mon 2026-10-26 +\$0\.000011/m);
    expect(text).toContain('Withdrawable     $0.000023');
    expect(text).toContain('$12.345678 by the account, with all 2 machines');
    expect(text).not.toContain('Pending');
    const maturing = [
      { at: '2026-11-01T00:00:00.000Z', amount_micro_usd: 1_000_000 },
      { at: '2026-11-02T00:00:00.000Z', amount_micro_usd: 234_567 },
    ];
    const pending = { ...earnings, account: { ...earnings.account, pending_micro_usd: 1_234_567, maturing } };
    expect(earningsLines(pending, viewOf(pending, []))).toContain('Pending          $1.234567; $1.000000 on 2026-11-01');
  });

  it('include the duty cycle, which survives restarts and excludes sleep', () => {
    let now = Date.parse('2026-01-01T10:59:58Z');
    const make = (): DutyCycleRecorder => new DutyCycleRecorder({ dataDir: folder, sample: null, now: () => now });
    const first = make();
    const step = (recorder: DutyCycleRecorder, ms: number, connected: boolean, busy: boolean): void => {
      now += ms;
      recorder.sample({ connected, busy });
    };
    step(first, 1000, true, true);
    step(first, 1000, true, false);
    step(first, 1000, false, false);
    // One hour of sleep, then a clock set back.
    step(first, 3_600_000, true, true);
    step(first, -7_200_000, true, true);
    first.close();
    const second = make();
    now = Date.parse('2026-01-01T11:00:00Z');
    second.sample({ connected: false, busy: false });
    step(second, 500, true, true);
    second.close();
    expect(readActivity(folder)).toEqual([
      { hour: Date.parse('2026-01-01T10:00:00Z') / 3_600_000, connected_ms: 1000, busy_ms: 1000 },
      { hour: Date.parse('2026-01-01T11:00:00Z') / 3_600_000, connected_ms: 1500, busy_ms: 500 },
    ]);
    expect(statSync(join(folder, 'activity.json')).mode & 0o777).toBe(0o600);
    writeFileSync(join(folder, 'activity.json'), 'not JSON');
    expect(readActivity(folder)).toEqual([]);
    expect(readFileSync(join(folder, 'activity.json'), 'utf8')).toBe('not JSON');
  });
});
