/**
 * An owner takes the machine back and lends it again, with the commands of the agent, and the whole network sees it: coordinator,
 * agent, engine and commands are processes of their own; the machine's state is a folder, in which there is a `caffeinate`, too.
 */
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ProviderStatusAnswer } from '@inference/protocol';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DemoNetwork, startDemoNetwork } from './support/demo-network.js';
import { descendantsOf, isAlive, waitUntilGone } from './support/processes.js';

const PROVIDER = resolve(fileURLToPath(new URL('../apps/provider/dist/main.js', import.meta.url)));
/** What the real one does, as far as it is used here: it ends with the process that it is told to watch. */
const CAFFEINATE = `#!/bin/sh
echo "$$ $*" >> "\${0%/*}/caffeinate.log"
while kill -0 "$3" 2>/dev/null; do sleep 0.1; done
`;

let network: DemoNetwork;
let dispose: () => Promise<void>;
let host: string;
let dataDir: string;
const notices: string[] = [];

beforeAll(async () => {
  host = mkdtempSync(join(tmpdir(), 'simulated-host-'));
  write({ 'usr/bin/caffeinate': CAFFEINATE }, 0o755);
  ({ network, dispose } = await startDemoNetwork({
    providers: 1,
    providerArgs: ['--simulated-host', host],
    onNotice: (text) => notices.push(text),
  }));
  dataDir = join(network.dataDir, 'provider-1');
});
afterAll(async () => {
  await dispose?.();
  rmSync(host, { recursive: true, force: true });
});

function write(files: Readonly<Record<string, string>>, mode = 0o644): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(host, path)), { recursive: true });
    writeFileSync(join(host, path), text, { mode });
  }
}

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

function run(...args: string[]): Promise<Ended> {
  const child = spawn(process.execPath, [PROVIDER, ...args, '--data-dir', dataDir], { stdio: ['ignore', 'pipe', 'pipe'] });
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (data: Buffer) => (stdout += data.toString()));
  child.stderr.on('data', (data: Buffer) => (stderr += data.toString()));
  return new Promise((done) => child.once('close', (code) => done({ code, stdout, stderr })));
}

interface Status {
  readonly pid: number;
  readonly availability: {
    readonly state: string;
    readonly reasons: readonly { code: string; text: string }[];
    readonly keeps_awake: boolean;
  };
  readonly connection: { readonly state: string; readonly since: number };
  readonly coordinator_view: ProviderStatusAnswer | null;
}

async function status(): Promise<Status> {
  return JSON.parse((await run('status', '--json')).stdout) as Status;
}

async function until<Value>(what: string, look: () => Promise<Value>, holds: (value: Value) => boolean): Promise<Value> {
  const deadline = Date.now() + 60_000;
  for (;;) {
    const value = await look();
    if (holds(value)) return value;
    if (Date.now() > deadline) throw new Error(`it did not come to this: ${what}, but to ${JSON.stringify(value)}`);
    await new Promise((next) => setTimeout(next, 100));
  }
}

const inState = (state: string) => until(state, status, ({ availability }) => availability?.state === state);
const served = async (): Promise<number> => {
  const response = await fetch(`${network.baseUrl}/v1/models`, { headers: { authorization: `Bearer ${network.apiKey}` } });
  return ((await response.json()) as { data: unknown[] }).data.length;
};
/** Processes that hold a model. */
const engines = (pid: number) => descendantsOf(pid).filter(({ command }) => /engine\/process\/main\.js/.test(command));
/** The process that keeps the machine awake, the newest first. */
const awake = (): number[] =>
  readFileSync(join(host, 'usr/bin/caffeinate.log'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => Number(line.split(' ')[0]))
    .reverse();
const ask = () =>
  network.post('/v1/chat/completions', {
    model: network.model,
    messages: [{ role: 'user', content: 'What is the capital of France?' }],
    max_tokens: 8,
  });

describe('a machine that serves', () => {
  it('is kept from going to sleep, and not its display', async () => {
    const { pid, availability } = await status();
    expect(availability).toMatchObject({ state: 'serving', reasons: [], keeps_awake: true });
    const [line] = readFileSync(join(host, 'usr/bin/caffeinate.log'), 'utf8').split('\n');
    expect(line).toBe(`${awake()[0]} -i -w ${pid}`);
  });
});

describe('a paused machine', () => {
  it('stays connected, frees its memory, gets nothing, and may sleep; and comes back', async () => {
    const before = await status();
    const processes = engines(before.pid);
    expect(processes.length).toBe(1);
    const [keeper = 0] = awake();
    const paused = await run('pause', '2h');
    expect([paused.code, paused.stderr]).toEqual([0, '']);
    expect(paused.stdout).toMatch(/It is paused until (?:[A-Z][a-z]{2} )?\d\d:\d\d\./);
    const away = await inState('away');
    expect(await waitUntilGone([...processes.map(({ pid }) => pid), keeper])).toEqual([]);
    expect(away.connection).toEqual(before.connection);
    expect(away.availability).toMatchObject({ reasons: [{ code: 'paused' }], keeps_awake: false });
    expect(away.coordinator_view).toMatchObject({
      status: 'away',
      gate: 'away',
      availability: { state: 'away', reason: 'paused', until: expect.stringMatching(/Z$/) },
      models: [{ id: network.model, routable: false, gate: 'away' }],
    });
    expect(away.coordinator_view?.next_steps[0]).toMatchObject({ code: 'paused' });
    expect(await served()).toBe(0);
    const refused = await ask();
    expect(refused.status).toBe(404);
    const shown = await run('status');
    expect(shown.stdout).toMatch(/^Serving +It takes no jobs\. It is paused until /m);

    const resumed = await run('resume', '--json');
    expect(JSON.parse(resumed.stdout)).toMatchObject({ availability: { state: 'serving', pause: null } });
    await until('a model', served, (count) => count === 1);
    expect((await ask()).status).toBe(200);
    const back = await until(
      'an engine',
      async () => engines(before.pid).length,
      (count) => count === 1,
    );
    expect([back, (await status()).connection]).toEqual([1, before.connection]);
  });

  it('is still paused when the agent was killed, which also ends what keeps the machine awake', async () => {
    const { pid } = await status();
    const [keeper = 0] = awake();
    expect(isAlive(keeper)).toBe(true);
    expect((await run('pause')).code).toBe(0);
    await inState('away');
    await run('resume');
    const [again = 0] = await until(
      'kept awake again',
      async () => awake(),
      ([newest]) => newest !== keeper,
    );
    await run('pause');
    process.kill(pid, 'SIGKILL');
    const later = await until(
      'another process',
      async () => status().catch(() => null),
      (now) => now !== null && now.pid !== pid && now.availability !== null,
    );
    expect(later?.availability).toMatchObject({ state: 'away', reasons: [{ code: 'paused' }], keeps_awake: false });
    expect(await waitUntilGone([keeper, again])).toEqual([]);
    expect(engines(later?.pid ?? 0)).toEqual([]);
    expect(await served()).toBe(0);
    await run('resume');
    await until('a model', served, (count) => count === 1);
    expect(notices.length).toBe(1);
  });

  it('that is killed while it serves lets the machine sleep', async () => {
    const { pid } = await inState('serving');
    const [keeper = 0] = awake();
    expect(isAlive(keeper)).toBe(true);
    process.kill(pid, 'SIGKILL');
    expect(await waitUntilGone([keeper])).toEqual([]);
    await until('a model', served, (count) => count === 1);
  });
});
