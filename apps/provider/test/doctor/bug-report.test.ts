/** Contents of a bug report, and data that must never be in one. */
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { hostname, userInfo } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { extract } from 'tar';
import { beforeAll, describe, expect, it } from 'vitest';
import { runNode } from '../../../../test/support/run-command.js';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { startingStatus } from '../../src/daemon/status.js';
import { collect, redactCrashLine, redactLogLine } from '../../src/doctor/bug-report/collect.js';
import { LEFT_OUT, Redactor } from '../../src/doctor/bug-report/redact.js';
import { installation } from '../../src/update/installation.js';

const MAIN = fileURLToPath(new URL('../../dist/main.js', import.meta.url));
const CANARIES = {
  serial: 'C02SERIAL77XY',
  token: 'machine-AbCdEf0123456789_secret-part',
  other: 'opaqueTokenOfSomeOtherShape99',
  pem: 'MIGHAgEAMBMGByqGSM49CANARYKEY',
  prompt: 'please keep my diagnosis private',
  email: 'owner.canary@example.org',
  address: '203.0.113.77',
  hardware: 'aa:bb:cc:dd:ee:77',
  query: 'ticket=canary-in-a-query',
  login: 'canary-login:canary-word',
  stranger: '/Users/somebodyelse',
};

let folder: string;
let home: string;
let dataDir: string;
beforeAll(() => {
  folder = temporaryDirectory('bugreport');
  home = join(folder, 'home-of-canary');
  dataDir = join(home, '.inference-provider');
  mkdirSync(join(dataDir, 'logs'), { recursive: true });
  mkdirSync(join(dataDir, 'enclave'), { mode: 0o700 });
  chmodSync(dataDir, 0o700);
  writeFileSync(
    join(dataDir, 'config.toml'),
    `# ${CANARIES.prompt}\ncoordinator = "http://${CANARIES.login}@127.0.0.1:9/x?${CANARIES.query}"\n`,
    { mode: 0o600 },
  );
  writeFileSync(join(dataDir, 'account.json'), JSON.stringify({ token: CANARIES.token, also: { deep: CANARIES.other } }), { mode: 0o600 });
  writeFileSync(join(dataDir, 'enclave/key.json'), `-----BEGIN PRIVATE KEY-----\n${CANARIES.pem}\n-----END PRIVATE KEY-----\n`, {
    mode: 0o600,
  });
  const lines = [
    { event: 'job', job_id: 'j-1', outcome: 'completed', prompt_tokens: 7, prompt: CANARIES.prompt, line: CANARIES.prompt },
    { event: 'disconnected', reason: `at ${CANARIES.address} by ${CANARIES.hardware}, ${userInfo().username} on ${hostname()}` },
    { event: 'starting', coordinator: `wss://${CANARIES.login}@h.example/s?${CANARIES.query}`, path: `${home}/models/a.gguf` },
    { event: 'rejected', detail: `${CANARIES.token} ${CANARIES.other} ${CANARIES.email} Bearer ${CANARIES.pem}` },
    { event: 'model_refused', path: `${CANARIES.stranger}/m.gguf`, messages: [CANARIES.prompt], url: CANARIES.query },
  ];
  writeFileSync(
    join(dataDir, 'logs/provider.log'),
    `${lines.map((line) => JSON.stringify({ level: 30, time: 1, ...line })).join('\n')}\nno json: ${CANARIES.prompt}\n`,
  );
  writeFileSync(
    join(dataDir, 'logs/output.log'),
    `SyntaxError: Unexpected token '${CANARIES.prompt}' is not valid JSON\n    at parse (file://${home}/dist/main.js:1:2)\n${CANARIES.prompt}\n\nNode.js v20.20.2\n`,
  );
});

const expectNone = (text: string): void => {
  for (const [name, canary] of Object.entries(CANARIES)) expect([name, text.includes(canary)]).toEqual([name, false]);
  expect(text).not.toContain('home-of-canary');
};

describe('a report', () => {
  it('contains facts that explain a fault, and no data of the owner', async () => {
    const base = startingStatus(
      { dataDir, socketUrl: `ws://${CANARIES.login}@h/provider/v1/socket`, simulatedEnclave: true, models: [{ path: `${home}/a.gguf` }] },
      0,
    );
    const view = {
      serial_number: CANARIES.serial,
      earnings: { total_micro_usd: 77_770_001 },
      decisions: [{ text: `of ${CANARIES.serial}` }],
    };
    const parts = await collect({
      dataDir,
      found: installation(),
      config: null,
      status: { ...base, coordinator_view: view as never },
      checks: [{ name: 'network', state: 'problem', text: `no way to ${CANARIES.address}`, remedy: `Ask ${CANARIES.email}` }],
      redactor: new Redactor({
        home,
        user: userInfo().username,
        host: hostname(),
        secrets: [CANARIES.serial, CANARIES.token, CANARIES.other],
      }),
    });
    expect(parts.map(({ name }) => name)).toEqual(['machine.json', 'doctor.json', 'files.txt', 'status.json', 'log.jsonl', 'crash.txt']);
    const all = parts.map(({ text }) => text).join('\n');
    expectNone(all);
    expect(all).not.toContain('77770001');
    const text = (name: string): string => parts.find((part) => part.name === name)?.text ?? '';
    expect(JSON.parse(text('machine.json'))).toMatchObject({ installed_by: 'clone', node: process.versions.node });
    expect(text('log.jsonl').split('\n')).toHaveLength(7);
    expect(text('log.jsonl')).toContain('"job_id":"j-1","outcome":"completed","prompt_tokens":7');
    expect(text('log.jsonl')).toContain('"path":"~/models/a.gguf"');
    expect(text('log.jsonl')).toContain('wss://h.example/s');
    expect(text('crash.txt')).toContain('SyntaxError: <');
    expect(text('crash.txt')).toContain('at parse (file://~/dist/main.js:1:2)');
    expect(text('files.txt')).toMatch(/0600 +\d+ enclave\/key\.json/);
    expect(JSON.parse(text('status.json'))).toMatchObject({ coordinator_view: { serial_number: LEFT_OUT, earnings: LEFT_OUT } });
  });

  it('lists its contents before writing, with mode 0600', async () => {
    const out = join(folder, 'report.tar.gz');
    const run = (...args: string[]) => runNode([MAIN, 'bugreport', '--out', out, ...args], { env: { ...process.env, HOME: home } });
    expect(await run()).toMatchObject({ code: 2, output: expect.stringContaining('Without a terminal') });
    expect(readdirSync(folder)).not.toContain('report.tar.gz');
    const { code, output: said } = await run('--yes');
    expect(code, said).toBe(0);
    expect(said.indexOf('log.jsonl')).toBeLessThan(said.indexOf('Wrote '));
    expect(said.indexOf('log.jsonl')).toBeGreaterThan(0);
    expect(statSync(out).mode & 0o777).toBe(0o600);
    const unpacked = mkdtempSync(join(folder, 'unpacked-'));
    await extract({ file: out, cwd: unpacked });
    const names = readdirSync(unpacked);
    expect(names.sort()).toEqual(['crash.txt', 'doctor.json', 'files.txt', 'log.jsonl', 'machine.json', 'settings.json']);
    for (const name of names) {
      expect(said).toContain(name);
      expectNone(readFileSync(join(unpacked, name), 'utf8'));
    }
    expect(await run('--yes')).toMatchObject({ code: 2, output: expect.stringContaining('already exists') });
  });
});

describe('the redactor', () => {
  const redactor = new Redactor({ home: '/home/ann', user: 'ann', host: 'anns-mac.local', secrets: ['S3CR3T'] });

  it('knows names as whole words, and leaves the rest of a text alone', () => {
    expect(redactor.text('ann cannot plan in /home/ann/x on anns-mac')).toBe('<user> cannot plan in ~/x on <host>');
    expect(redactor.text('at 12:30:45 version 1.20.3, 127.0.0.1:8080, ::1, fe80::1')).toBe(
      'at 12:30:45 version 1.20.3, 127.0.0.1:8080, ::1, <address>',
    );
    expect(redactor.text('xs3cr3tx')).toBe('x<secret>x');
    expect(redactor.value({ prompt_tokens: 7, api_key: 'x', routable: true, a: { token: 'y' } })).toEqual({
      prompt_tokens: 7,
      api_key: LEFT_OUT,
      routable: true,
      a: { token: LEFT_OUT },
    });
  });

  it('drops unknown lines', () => {
    expect(redactLogLine('not json', redactor)).toBe('{"left_out":8}');
    expect(redactLogLine('{"event":"x","surprise":"what?"}', redactor)).toBe('{"event":"x"}');
    expect(redactCrashLine('what the model said', redactor)).toBe('<19 characters left out>');
  });
});
