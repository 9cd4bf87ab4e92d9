/** Linking a machine to its owner's account, with separate processes for commands and daemon, and a coordinator with its console. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { Browser } from '../apps/coordinator/test/support/console-client.js';
import { type Harness, NO_RATE_LIMITS, startHarness } from '../apps/coordinator/test/support/harness.js';
import { findCommand } from '../apps/provider/src/cli/command-table.js';
import { ControlServer } from '../apps/provider/src/control/control-server.js';
import type { DaemonStatus } from '../apps/provider/src/control/daemon-status.js';
import { get } from '../apps/provider/src/control/route.js';
import { ProviderProcess } from '../apps/provider/test/support/provider-process.js';
import { Terminal } from '../apps/provider/test/support/terminal.js';
import { addressOf, listenLocally } from './support/local-server.js';
import { temporaryDirectory } from './support/temporary-directory.js';

const MAIN = fileURLToPath(new URL('../apps/provider/dist/main.js', import.meta.url));
/** Nothing listens on this port. */
const NOWHERE = 'http://127.0.0.1:9';
const CODE = /[B-DF-HJ-NP-TV-XZ]{4}-[B-DF-HJ-NP-TV-XZ]{4}/;

/** A running command of the agent. */
class Command {
  output = '';
  errors = '';
  readonly child: ChildProcess;
  readonly #exit: Promise<number | null>;

  constructor(...args: readonly string[]) {
    this.child = spawn(process.execPath, [MAIN, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
    this.child.stdout?.on('data', (data: Buffer) => {
      this.output += data.toString();
    });
    this.child.stderr?.on('data', (data: Buffer) => {
      this.errors += data.toString();
    });
    this.#exit = new Promise((resolve) => this.child.once('close', resolve));
  }

  /** Exit code and complete output. */
  async end(): Promise<{ code: number | null; output: string; errors: string }> {
    const code = await this.#exit;
    return { code, output: this.output, errors: this.errors };
  }

  /** User code shown to the owner. */
  async userCode(): Promise<string> {
    let hasEnded = false;
    void this.#exit.then(() => {
      hasEnded = true;
    });
    for (;;) {
      const found = CODE.exec(this.output)?.[0];
      if (found !== undefined) return found;
      if (hasEnded) throw new Error(`no code was shown:\n${this.output}${this.errors}`);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }
}

const run = (...args: readonly string[]) => new Command(...args).end();

describe('a machine and its owner', () => {
  const folder = temporaryDirectory('account');
  const dataDir = join(folder, 'machine');
  let harness: Harness;
  let owner: Browser;
  let daemon: ProviderProcess | null = null;
  beforeAll(async () => {
    harness = await startHarness({ linkPollMs: 100, config: { rateLimits: NO_RATE_LIMITS } });
    owner = new Browser(harness.url);
    await owner.signUp('ada@example.com');
  });
  afterAll(async () => {
    await daemon?.dispose();
    await harness.close();
  });
  const at = ['--data-dir', dataDir] as const;
  const login = (): Command => new Command('login', '--coordinator', harness.url, '--name', 'Attic Mac', ...at);
  const decide = async (command: Command, how: 'approve' | 'deny'): Promise<void> => {
    const code = await command.userCode();
    expect((await (await owner.get(`/console/v1/device-codes/${code}`)).json()) as object).toMatchObject({ machine_name: 'Attic Mac' });
    expect((await owner.post(`/console/v1/device-codes/${code}/${how}`)).status).toBe(200);
  };
  const machines = async (): Promise<string[]> =>
    ((await (await owner.get('/console/v1/machines')).json()) as { data: { provider_id: string }[] }).data.map((one) => one.provider_id);

  it('is told what is wrong, with an exit code, before anything was linked', async () => {
    expect(await run('login', '--coordinator', NOWHERE, ...at)).toMatchObject({
      code: 4,
      errors: expect.stringContaining('cannot be reached'),
    });
    expect(await run('login', '--coordinator', 'not-a-url', ...at)).toMatchObject({ code: 2 });
    expect(await run('login', ...at)).toMatchObject({ code: 1, errors: expect.stringContaining('inference-provider setup') });
    expect(await run('earnings', ...at)).toMatchObject({ code: 1, errors: expect.stringContaining('inference-provider login') });
    expect(await run('earnings', '--days', '0', ...at)).toMatchObject({ code: 2 });
    expect(await run('logout', ...at)).toMatchObject({ code: 0, output: 'This machine was not signed in.\n' });
    expect(await run('verify', ...at)).toMatchObject({ code: 3 });
  });

  it('is not linked when its owner refuses or breaks off', async () => {
    const refused = login();
    await decide(refused, 'deny');
    expect(await refused.end()).toMatchObject({ code: 1, errors: 'The request was denied in the console. Nothing was linked.\n' });
    const broken = login();
    await broken.userCode();
    broken.child.kill('SIGINT');
    expect(await broken.end()).toMatchObject({ code: 1, errors: expect.stringContaining('Canceled. Nothing was linked') });
    expect(existsSync(join(dataDir, 'account.json'))).toBe(false);
  });

  it('is signed in before it runs, and linked when it does', async () => {
    const command = login();
    await decide(command, 'approve');
    expect(await command.end()).toMatchObject({ code: 0, errors: '' });
    expect(command.output).toContain(`${harness.url}/link`);
    expect(command.output).toContain('This machine will be linked when the provider starts');
    expect(statSync(join(dataDir, 'account.json')).mode & 0o777).toBe(0o600);
    const { token } = JSON.parse(readFileSync(join(dataDir, 'account.json'), 'utf8')) as { token: string };
    expect(command.output).not.toContain(token);
    expect(await run('earnings', ...at)).toMatchObject({ code: 1, errors: expect.stringContaining('not linked yet') });

    daemon = ProviderProcess.start(harness.url, ['--simulated-enclave'], dataDir);
    await daemon.logged('registered');
    await harness.until(async () => (await machines()).length === 1);
    await daemon.logged('account');
    expect(daemon.stdout).not.toContain(token);
    const { output } = await run('status', ...at);
    expect(output).toMatch(/^State {8}Ready for requests/m);
    expect(output).toMatch(/^Account {6}Ada$/m);
  });

  it('earns, and its owner sees what', async () => {
    const models = ((await (await harness.get('/v1/models')).json()) as { data: { id: string }[] }).data;
    const model = models[0]?.id ?? '';
    const { apiKey } = await harness.customer(1_000_000);
    const headers = { authorization: `Bearer ${apiKey}` };
    expect((await harness.chat({ model, max_tokens: 64 }, { headers })).status).toBe(200);
    let told: { code: number | null; output: string } = { code: null, output: '' };
    await harness.until(async () => {
      told = await run('earnings', '--json', '--time-zone', 'UTC', ...at);
      return (JSON.parse(told.output) as { data: unknown[] }).data.length > 0;
    });
    expect(JSON.parse(told.output)).toMatchObject({
      account_name: 'Ada',
      data: [{ model, requests: 1 }],
      summary: { today: { requests: 1 }, week: { requests: 1 } },
      account: { machines: 1 },
    });
    const { code, output } = await run('earnings', '--days', '2', ...at);
    expect(code).toBe(0);
    expect(output).toContain('Earnings of this machine, for Ada');
    expect(output).toMatch(/^Today +\$0\.\d{6} +1 +\d+/m);
    expect(output).toContain('Withdrawable');
    expect(output).toMatch(/^Next 30 days {5}(?:~\$|no estimate)/m);
    const csv = await run('earnings', '--days', '2', '--csv', ...at);
    expect(csv.output).toMatch(
      /^day,time_zone,provider_id,model,.+,earned_usd\n\d{4}-\d{2}-\d{2},[^,]+,[0-9a-f]+,pico-demo,\d+,\d+,\d+,0,0\.\d{6}\n/,
    );
    expect(await run('earnings', '--csv', '--json', ...at)).toMatchObject({ code: 2 });
    expect(await run('earnings', '--watts', '50', ...at)).toMatchObject({
      code: 2,
      errors: expect.stringContaining('--electricity-price'),
    });
    for (const line of output.split('\n')) expect(line.length).toBeLessThanOrEqual(80);
    expect((await run('status', ...at)).output).toMatch(/^Today +\$0\.\d{6} +1 request +\d+ tokens/m);
  });

  it('checks what is published of it, and is told when that is not true', async () => {
    const { code, output } = await run('verify', ...at);
    expect([code, output]).toEqual([0, expect.stringContaining('All claims match the evidence.')]);
    expect(output).toMatch(/^holds +serial_number: /m);
    const status = JSON.parse((await run('status', '--json', ...at)).output) as DaemonStatus;
    const feed = await (await harness.get('/v1/providers/attestation')).text();
    const answers: { status?: number; body: string }[] = [
      { body: feed.replaceAll(/"chip_name":"[^"]*"/g, '"chip_name":"M9 Ultra"') },
      { body: JSON.stringify({ ...(JSON.parse(feed) as object), providers: [] }) },
      { body: '<html>' },
      { status: 500, body: '{"error":{"message":"broken"}}' },
    ];
    const server = createServer((_, response) => {
      const { status: answered = 200, body } = answers.shift() ?? { status: 503, body: '' };
      response.writeHead(answered).end(body);
    });
    await listenLocally(server);
    const other = join(folder, 'other');
    const coordinator = addressOf(server);
    const control = await ControlServer.open(other, [get('/v1/status', async () => ({ ...status, coordinator }))]);
    try {
      const forged = await run('verify', '--data-dir', other);
      expect(forged).toMatchObject({ code: 1, output: expect.stringMatching(/^WRONG +chip_name: M9 Ultra$/m) });
      expect(forged.output).toContain('1 claim does not match the evidence');
      expect(await run('verify', '--data-dir', other)).toMatchObject({
        code: 1,
        errors: expect.stringContaining('This machine has no public record'),
      });
      expect(await run('verify', '--data-dir', other)).toMatchObject({ code: 1, errors: expect.stringContaining('no JSON') });
      expect(await run('verify', '--data-dir', other)).toMatchObject({ code: 4, errors: expect.stringContaining('broken') });
    } finally {
      await control.close();
      server.close();
    }
  });

  it('says that its sign-in was revoked, serves on, and is linked anew while it runs', async () => {
    const [id = ''] = await machines();
    expect((await owner.send('DELETE', `/console/v1/machines/${id}`)).status).toBe(200);
    let output = '';
    await harness.until(async () => {
      ({ output } = await run('status', ...at));
      return output.includes('not linked:');
    });
    expect(output).toContain('not linked: token revoked.');
    expect(output).toContain('inference-provider login');
    expect(output).toMatch(/^State {8}Ready for requests/m);
    const doctor = await run('doctor', ...at);
    expect(doctor.output).toMatch(/PROBLEM\s+account\s+this machine is not linked to an account: token\s+revoked/);
    expect(await run('earnings', ...at)).toMatchObject({ code: 1, errors: expect.stringContaining('revoked') });

    const command = login();
    await decide(command, 'approve');
    expect(await command.end()).toMatchObject({ code: 0, output: expect.stringContaining('Linked. Earnings of this machine go to Ada.') });
    expect(await machines()).toEqual([id]);
    expect(await run('logout', ...at)).toMatchObject({ code: 0, output: expect.stringContaining('Past earnings stay in the account') });
    expect(await machines()).toEqual([]);
    expect((await run('status', ...at)).output).toMatch(/^Account {6}none\. /m);
  });

  it('forgets its sign-in though the coordinator cannot be told, and says which', async () => {
    const elsewhere = join(folder, 'elsewhere');
    const harness2 = await startHarness({ linkPollMs: 100, config: { rateLimits: NO_RATE_LIMITS } });
    const person = new Browser(harness2.url);
    await person.signUp('grace@example.com');
    const command = new Command('login', '--coordinator', harness2.url, '--data-dir', elsewhere);
    expect((await person.post(`/console/v1/device-codes/${await command.userCode()}/approve`)).status).toBe(200);
    expect((await command.end()).code).toBe(0);
    await harness2.close();
    const forgotten = await run('logout', '--data-dir', elsewhere);
    expect(forgotten).toMatchObject({ code: 4, errors: expect.stringContaining('You are signed out on this machine') });
    expect(existsSync(join(elsewhere, 'account.json'))).toBe(false);
  });

  describe('setup', () => {
    let terminal: Terminal | null = null;
    afterEach(async () => {
      await terminal?.dispose();
      terminal = null;
    });
    const fresh = join(folder, 'fresh');
    const asked = (): Terminal => {
      terminal = new Terminal(`${process.execPath} ${MAIN} setup --simulated-enclave --name 'Attic Mac' --data-dir ${fresh}`, {
        columns: 100,
        rows: 40,
        env: { HF_ENDPOINT: NOWHERE },
      });
      return terminal;
    };

    it('names the options that are missing where nobody can be asked', async () => {
      const { code, errors } = await run('setup', '--data-dir', join(folder, 'script'));
      expect(code).toBe(2);
      for (const option of ['--coordinator URL', '--link or --no-link', '--model', '--start or --no-start'])
        expect(errors).toContain(option);
      expect(await run('setup', '--yes', '--data-dir', join(folder, 'script'))).toMatchObject({
        code: 2,
        errors: expect.stringContaining('--coordinator URL'),
      });
      expect(await run('setup', '--link', '--no-link', '--data-dir', join(folder, 'script'))).toMatchObject({ code: 2 });
      const down = await run('setup', '--yes', '--coordinator', NOWHERE, '--data-dir', join(folder, 'script'));
      expect(down).toMatchObject({ code: 4, errors: expect.stringContaining('cannot be reached') });
    });

    it('asks, is cancelled, and resumes', async () => {
      const first = asked();
      await first.shows('Address of the coordinator');
      first.type(`${NOWHERE}\r`);
      await first.shows('cannot be reached');
      first.type(`${harness.url}\r`);
      await first.shows('Link this machine to your account now');
      first.type('\u0003');
      await first.shows('Setup canceled.');
      expect(await first.exit).toBe(1);
      await first.dispose();

      const second = asked();
      await second.shows(`Address of the coordinator [${harness.url}]`);
      second.type('\r');
      await second.shows('Link this machine to your account now');
      second.type('yes\r');
      const code = CODE.exec(await second.shows(CODE))?.[0] ?? '';
      expect((await owner.post(`/console/v1/device-codes/${code}/approve`)).status).toBe(200);
      await second.shows('Model: its number');
      second.type('1\r');
      for (const [question, answer] of QUESTIONS_AFTER_MODEL) {
        await second.shows(question);
        second.type(`${answer}\r`);
      }
      const done = await second.shows('To start the provider, run: inference-provider start');
      expect(done).toMatch(
        /This machine is set up to serve the demo model, but is not serving yet\.\s+Earnings\s+go\s+to\s+your\s+account\./,
      );
      expect(await second.exit).toBe(0);
      expect(readFileSync(join(fresh, 'config.toml'), 'utf8')).toContain(`coordinator = "${harness.url}"`);
    });

    it('takes every answer from its options, and does nothing twice', async () => {
      const file = fileURLToPath(new URL('../apps/provider/demo-models/pico/pico.gguf', import.meta.url));
      const { code, output } = await run('setup', '--yes', '--model', file, '--no-start', '--data-dir', fresh);
      expect([code, output]).toEqual([0, expect.stringContaining('Account: signed in already')]);
      expect(output).toMatch(/set up to serve \S+, but is not serving yet\.\s+Earnings\s+go\s+to\s+your\s+account/);
      const again = await run('setup', '--yes', '--no-start', '--data-dir', fresh);
      expect(again).toMatchObject({ code: 0, output: expect.stringMatching(/^Models: \S+$/m) });
      // The small model is served while no stored model is in use.
      expect((await run('setup', '--yes', '--model', 'demo', '--no-start', '--data-dir', fresh)).output).toContain('the demo model');
      expect((await run('models', 'list', '--data-dir', fresh)).output).toContain('not served');
    });
  });
});

const QUESTIONS_AFTER_MODEL: readonly (readonly [string, string])[] = [
  ...(findCommand(['schedule', 'set']) === null ? [] : [['Serving times', 'mon-fri 22:00-07:00'] as const]),
  ['Start the provider now', 'no'],
];
