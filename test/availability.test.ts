/**
 * An owner pauses and resumes a machine with the agent's commands, and the whole network follows. Coordinator, agent, engine and
 * commands are separate processes; the machine's state is a folder that also holds a fake `caffeinate`.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { requestStatus } from '../apps/provider/src/control/control-client.js';
import type { DaemonStatus } from '../apps/provider/src/control/daemon-status.js';
import { type DemoNetwork, startDemoNetwork } from './support/demo-network.js';
import { descendantsOf, waitUntilGone } from './support/processes.js';
import { runNode } from './support/run-command.js';
import { temporaryDirectory } from './support/temporary-directory.js';

const PROVIDER = resolve(fileURLToPath(new URL('../apps/provider/dist/main.js', import.meta.url)));
/** Behaves like the real tool as far as needed: ends together with the watched process. */
const CAFFEINATE = `#!/bin/sh
echo "$$ $*" >> "$(dirname "$0")/caffeinate.log"
while kill -0 "$3" 2>/dev/null; do sleep 0.1; done
`;

let network: DemoNetwork;
let dispose: () => Promise<void>;
let host: string;
let dataDir: string;
const notices: string[] = [];

beforeAll(async () => {
  host = temporaryDirectory('simulated-host');
  write({ 'usr/bin/caffeinate': CAFFEINATE }, 0o755);
  ({ network, dispose } = await startDemoNetwork({
    providers: 1,
    providerArgs: ['--simulated-host', host, '--model', 'demo-text@30'],
    onNotice: (text) => notices.push(text),
  }));
  dataDir = join(network.dataDir, 'provider-1');
});
afterAll(() => dispose?.());

function write(files: Readonly<Record<string, string>>, mode = 0o644): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(host, path)), { recursive: true });
    writeFileSync(join(host, path), text, { mode });
  }
}

const run = (...args: string[]) => runNode([PROVIDER, ...args, '--data-dir', dataDir]);

const status = () => requestStatus(dataDir, 60_000);

async function until<Value>(what: string, look: () => Promise<Value>, holds: (value: Value) => boolean): Promise<Value> {
  const deadline = Date.now() + 100_000;
  for (;;) {
    const value = await look();
    if (holds(value)) return value;
    if (Date.now() > deadline) throw new Error(`it did not come to this: ${what}, but to ${JSON.stringify(value)}`);
    await new Promise((next) => setTimeout(next, 50));
  }
}

/** Whether agent and coordinator both report the state. */
const isIn = (state: string, reason?: string) => (now: DaemonStatus | null) =>
  now?.availability?.state === state && now.coordinator_view?.availability?.state === state && now.availability.reasons[0]?.code === reason;
const inState = (state: string, reason?: string) => until(`${state} ${reason}`, status, isIn(state, reason)) as Promise<DaemonStatus>;
const served = async (): Promise<number> => {
  const response = await fetch(`${network.baseUrl}/v1/models`, { headers: { authorization: `Bearer ${network.apiKey}` } });
  return ((await response.json()) as { data: unknown[] }).data.length;
};
/** Child processes with a loaded model. */
const engines = (pid: number): number[] =>
  descendantsOf(pid)
    .filter(({ command }) => /engine\/process\/main\.js/.test(command))
    .map((row) => row.pid);
/** Wake locks, newest first: process id and command line. */
async function awake(times: number): Promise<string[]> {
  const log = join(host, 'usr/bin/caffeinate.log');
  const look = async (): Promise<string[]> => (existsSync(log) ? readFileSync(log, 'utf8').split('\n').slice(0, -1).reverse() : []);
  return until(`kept awake ${times} times`, look, (lines) => lines.length === times);
}
const ask = () =>
  network.post('/v1/chat/completions', {
    model: network.model,
    messages: [{ role: 'user', content: 'What is the capital of France?' }],
    max_tokens: 8,
  });
/** Time of day some hours from now in a zone, in the form an owner types. */
const hoursAhead = (hours: number, timeZone: string): string =>
  new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', hourCycle: 'h23', timeZone }).format(
    Date.now() + hours * 3_600_000,
  );

describe('a paused machine', () => {
  it('stays connected, frees its memory, gets nothing, and may sleep; and comes back', async () => {
    expect((await ask()).status).toBe(200);
    const before = await status();
    expect(before.availability).toMatchObject({ state: 'serving', reasons: [], pause: null, keeps_awake: true });
    const holding = engines(before.pid);
    expect(holding.length).toBeGreaterThan(0);
    const [called = ''] = await awake(1);
    const keeper = Number(called.split(' ', 1)[0]);
    // No -d: the display may sleep.
    expect(called).toBe(`${keeper} -i -w ${before.pid}`);

    const paused = await run('pause', '2h');
    expect([paused.code, paused.stderr]).toEqual([0, '']);
    expect(paused.stdout).toMatch(/^Not accepting (?:new )?requests: paused until (?:[A-Z][a-z]{2} )?\d\d:\d\d\./m);
    const away = await inState('away', 'paused');
    expect(await waitUntilGone([...holding, keeper])).toEqual([]);
    expect(away.connection).toEqual(before.connection);
    expect(away.availability).toMatchObject({ pause: { until: expect.any(Number) }, keeps_awake: false });
    expect(away.coordinator_view).toMatchObject({
      status: 'away',
      gate: 'away',
      availability: { state: 'away', reason: 'paused', until: new Date(away.availability?.pause?.until ?? 0).toISOString() },
      models: [{ id: network.model, routable: false, gate: 'away' }],
    });
    expect(away.coordinator_view?.next_steps[0]).toMatchObject({ code: 'paused' });
    expect([await served(), (await ask()).status]).toEqual([0, 503]);
    expect((await run('status')).stdout).toMatch(
      /^State {8}Not accepting requests\nReason {7}Paused until .+\nNext {9}Resume: inference-provider resume$/m,
    );

    const resumed = await run('resume', '--json');
    expect(JSON.parse(resumed.stdout)).toMatchObject({ availability: { state: 'serving', pause: null } });
    await inState('serving');
    expect([await served(), (await ask()).status]).toEqual([1, 200]);
    expect((await status()).connection).toEqual(before.connection);
    await awake(2);
  });

  it('is still paused when it was killed and is started again', async () => {
    const { pid } = await status();
    expect((await run('pause')).stdout).toContain('paused until you resume.');
    process.kill(pid, 'SIGKILL');
    const later = await until(
      'another process',
      () => status().catch(() => null),
      (now) => now?.pid !== pid && isIn('away', 'paused')(now),
    );
    expect([later?.availability?.pause, engines(later?.pid ?? 0), await served()]).toEqual([{ until: null }, [], 0]);
    await run('resume');
    await inState('serving');
    expect(await served()).toBe(1);
  });

  it.each([
    [['pause', 'forever'], 2, '"forever" is not a duration'],
    [['pause', '30m', 'please'], 2, 'Unexpected argument: "please"'],
    [['resume', 'now'], 2, 'Unexpected argument: "now"'],
    [['schedule', 'set', 'someday'], 2, '"someday" is neither a day nor a time'],
  ])('is not what comes of %j', async (words, code, sentence) => {
    const ended = await run(...words);
    expect([ended.code, ended.stdout]).toEqual([code, '']);
    expect(ended.stderr).toContain(sentence);
  });
});

describe('a schedule', () => {
  const zone = 'Asia/Kathmandu';
  const config = () => readFileSync(join(dataDir, 'config.toml'), 'utf8');

  it('is set, shown and cleared, holds at once, and leaves what the owner wrote beside it', async () => {
    writeFileSync(join(dataDir, 'config.toml'), `# mine\n[availability]\ntime_zone = "${zone}" # where I live\n`);
    const set = await run('schedule', 'set', `daily ${hoursAhead(2, zone)}-${hoursAhead(3, zone)}`);
    expect([set.code, set.stderr]).toEqual([0, '']);
    expect(set.stdout).toContain('The running provider uses the schedule now.');
    const { availability } = await inState('away', 'outside_schedule');
    expect(availability?.reasons[0]?.text).toContain('Outside your schedule until ');
    const shown = JSON.parse((await run('schedule', '--json')).stdout) as { open_times: { from: string }[] };
    expect(shown).toMatchObject({ time_zone: zone, open_now: false });
    expect(shown.open_times.length).toBeGreaterThanOrEqual(7);
    expect(new Date(availability?.next_change_at ?? 0).toISOString()).toBe(shown.open_times[0]?.from);
    expect((await run('schedule', 'clear')).stdout).toContain('No schedule. This machine serves at all times.');
    await inState('serving');
    expect(config()).toBe(`# mine\n[availability]\ntime_zone = "${zone}" # where I live\nwindows = []\n`);
  });

  it('gives way to the owner, who uses the machine', async () => {
    write({ 'run/owner-idle-seconds': '3' });
    writeFileSync(join(dataDir, 'config.toml'), '[availability]\nonly_when_idle_minutes = 10\n');
    await inState('away', 'owner_active');
    write({ 'run/owner-idle-seconds': '601' });
    await inState('serving');
    writeFileSync(join(dataDir, 'config.toml'), '');
  });
});

describe('memory that the owner wants back', () => {
  it('is given back while the agent runs, with one sentence, and models are there again when they may', async () => {
    expect((await ask()).status).toBe(200);
    const holding = engines((await status()).pid);
    writeFileSync(join(dataDir, 'config.toml'), '[models]\nreserve_gb = 4096\n');
    expect(await waitUntilGone(holding)).toEqual([]);
    await until('no model', served, (count) => count === 0);
    const sentence = /a model is not served: the model pico-demo needs \d+\.\d [MG]B of memory, and models may take 0\.0 MB here; choose/;
    await until(
      'the sentence',
      async () => readFileSync(join(network.logDir, 'provider-1.log'), 'utf8'),
      (log) => sentence.test(log),
    );
    writeFileSync(join(dataDir, 'config.toml'), '');
    await until('a model', served, (count) => count === 1);
  });
});

describe('a machine in trouble', () => {
  const pressure = (some: string) => ({ 'proc/pressure/memory': `some avg10=${some} total=1\nfull avg10=0.00 total=1\n` });

  it('that is short of memory lets a model go that nobody uses, at once', async () => {
    expect((await ask()).status).toBe(200);
    const { pid } = await status();
    const holding = engines(pid);
    expect(holding.length).toBeGreaterThan(0);
    write(pressure('20.00'));
    expect(await waitUntilGone(holding)).toEqual([]);
    expect((await status()).availability?.state).toBe('serving');
    write(pressure('0.00'));
  });
});
