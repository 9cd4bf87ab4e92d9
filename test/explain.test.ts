/**
 * An owner inspects a running provider: machine facts, the coordinator's view, and the agent's commands. Coordinator, agent and
 * commands are separate processes; a folder replaces /sys and /proc.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ProviderStatusAnswer } from '@inference/protocol';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DemoNetwork, startDemoNetwork } from './support/demo-network.js';
import { runNode } from './support/run-command.js';
import { temporaryDirectory } from './support/temporary-directory.js';

const PROVIDER = resolve(fileURLToPath(new URL('../apps/provider/dist/main.js', import.meta.url)));

let network: DemoNetwork;
let dispose: () => Promise<void>;
let host: string;
let dataDir: string;

beforeAll(async () => {
  host = temporaryDirectory('simulated-host');
  ({ network, dispose } = await startDemoNetwork({ providers: 1, providerArgs: ['--simulated-host', host] }));
  dataDir = join(network.dataDir, 'provider-1');
});
afterAll(() => dispose?.());

const run = (...args: string[]) => runNode([PROVIDER, ...args]);

interface ProviderState {
  readonly gate: string | null;
  readonly host: { readonly thermal: string; readonly memory_pressure: string; readonly power: string };
}

/** The coordinator's view of the provider. */
async function stateOf(): Promise<ProviderState | undefined> {
  const response = await fetch(`${network.baseUrl}/admin/v1/providers`, { headers: { authorization: `Bearer ${network.adminKey}` } });
  return ((await response.json()) as { providers: ProviderState[] }).providers[0];
}

async function until(what: string, condition: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 55_000;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`it did not come to this: ${what}`);
    await new Promise((next) => setTimeout(next, 50));
  }
}

function write(files: Readonly<Record<string, string>>): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(host, path)), { recursive: true });
    writeFileSync(join(host, path), `${text}\n`);
  }
}

const zone = (temp: string) => ({
  'sys/class/thermal/thermal_zone0/trip_point_0_type': 'critical',
  'sys/class/thermal/thermal_zone0/trip_point_0_temp': '105000',
  'sys/class/thermal/thermal_zone0/trip_point_1_type': 'passive',
  'sys/class/thermal/thermal_zone0/trip_point_1_temp': '95000',
  'sys/class/thermal/thermal_zone0/temp': temp,
});
const memory = (some: string, full: string) => ({ 'proc/pressure/memory': `some avg10=${some} total=1\nfull avg10=${full} total=1` });
const battery = (capacity: string, status: string) => ({
  'sys/class/power_supply/BAT0/type': 'Battery',
  'sys/class/power_supply/BAT0/status': status,
  'sys/class/power_supply/BAT0/capacity': capacity,
});

describe('a machine in trouble', () => {
  it.each([
    ['too hot', zone('104000'), zone('50000'), 'away', { thermal: 'critical' }],
    ['out of memory', memory('60.00', '30.00'), memory('0.00', '0.00'), 'away', { memory_pressure: 'critical' }],
    ['low on battery', battery('12', 'Discharging'), battery('12', 'Charging'), 'away', { power: 'low_battery' }],
    ['warm', zone('88000'), zone('50000'), null, { thermal: 'fair' }],
    ['short of memory', memory('20.00', '0.00'), memory('0.00', '0.00'), null, { memory_pressure: 'warning' }],
  ])('that is %s is told to the coordinator, and so is its end', async (_name, bad, good, gate, seen) => {
    write(bad);
    await until(`gate ${gate}`, async () => {
      const state = await stateOf();
      return state?.gate === gate && Object.entries(seen).every(([part, value]) => state.host[part as keyof typeof state.host] === value);
    });
    write(good);
    await until('well again', async () => {
      const state = await stateOf();
      return state?.gate === null && Object.values(state.host).join(' ') === 'nominal normal mains';
    });
  });
});

describe('status', () => {
  it('tells what was given to the provider, and what would help', async () => {
    const answer = await network.openai.chat.completions.create({
      model: network.model,
      messages: [{ role: 'user', content: 'What is the capital of France?' }],
      temperature: 0,
    });
    expect(answer.choices[0]?.message.content).toContain('Paris');
    const [json, text] = await Promise.all([run('status', '--data-dir', dataDir, '--json'), run('status', '--data-dir', dataDir)]);
    expect([json.code, json.stderr, text.code, text.stderr]).toEqual([0, '', 0, '']);
    const status = JSON.parse(json.stdout) as { coordinator_view: ProviderStatusAnswer; connection: object; jobs: object };
    expect(status).toMatchObject({
      state: 'running',
      connection: { state: 'connected' },
      engine: 'ready',
      jobs: { completed: 1, failed: 0 },
    });
    expect(status.coordinator_view).toMatchObject({ placements: 1, share: 1, models: [{ id: network.model, routable: true }] });
    expect(status.coordinator_view.decisions[0]).toMatchObject({ outcome: 'chosen', model: network.model });
    expect(json.stdout).not.toMatch(/France|Paris/);
    for (const line of text.stdout.split('\n')) expect(line.length).toBeLessThanOrEqual(80);
    expect(text.stdout).toMatch(/^Trust +self_signed \(simulated enclave\), ready for requests$/m);
    expect(text.stdout).toContain('Chosen: ');
    expect(text.stdout).toMatch(/^State {8}Ready for requests\n(?:Reason .+\n)?(?: .+\n)*Next {9}\S/);
  });

  it('says so when no provider runs there, or the command line is wrong', async () => {
    const ended = await Promise.all([run('status', '--data-dir', host), run('status', '--nonsense'), run('doctor', '--nonsense')]);
    expect(ended.map(({ code, stdout }) => [code, stdout])).toEqual([
      [3, ''],
      [2, ''],
      [2, ''],
    ]);
    expect(ended[0]?.stderr).toBe(
      `No provider is running with the data directory ${host}. To start it, run "inference-provider start"; on a new machine, "inference-provider setup".\n`,
    );
  });
});

describe('a second daemon for the same data directory', () => {
  it('does not start', async () => {
    const ended = await run('serve', '--coordinator', network.baseUrl, '--data-dir', dataDir, '--simulated-enclave');
    expect([ended.code, ended.stderr]).toEqual([1, `Another provider is already running with the data directory ${dataDir}.\n`]);
  });
});

describe('doctor', () => {
  interface Report {
    readonly healthy: boolean;
    readonly checks: readonly { name: string; state: string; text: string; remedy: string | null }[];
  }

  it('finds nothing that needs the owner of a provider that is well', async () => {
    const ended = await run('doctor', '--data-dir', dataDir, '--json');
    const report = JSON.parse(ended.stdout) as Report;
    expect(report.checks.filter(({ state }) => state === 'problem')).toEqual([]);
    // This agent runs from a clone with a named model, possibly not on a Mac.
    const elsewhere = ['model files', 'sleep', 'command', 'updates'];
    expect(report.checks.filter(({ name, state }) => state === 'skipped' && !elsewhere.includes(name))).toEqual([]);
    expect([ended.code, report.healthy]).toEqual([0, true]);
    const names = ['provider', 'data directory', 'enclave', 'disk', 'model', 'machine', 'network', 'clock', 'coordinator'];
    expect(report.checks.map(({ name }) => name)).toEqual(expect.arrayContaining(names));
    for (const { state, remedy } of report.checks) if (state === 'note') expect(remedy).toBeTruthy();
  });

  it('says what is missing where nothing runs, and looks at the rest all the same', async () => {
    const ended = await run('doctor', '--data-dir', host, '--coordinator', network.baseUrl, '--simulated-enclave');
    expect(ended.code).toBe(1);
    expect(ended.stdout).toMatch(/^PROBLEM +provider +no provider is running/m);
    expect(ended.stdout).toMatch(/^ok +network /m);
    expect(ended.stdout).toMatch(/^1 problem to fix\.$/m);
  });

  it('ends while the provider is frozen, and says that it does not answer', async () => {
    const pid = Number((JSON.parse((await run('status', '--data-dir', dataDir, '--json')).stdout) as { pid: number }).pid);
    process.kill(pid, 'SIGSTOP');
    try {
      const ended = await run('doctor', '--data-dir', dataDir);
      expect(ended.code).toBe(1);
      expect(ended.stdout).toMatch(/^PROBLEM +provider +the provider is not responding/m);
      expect(ended.stdout).toMatch(/^1 problem to fix\.$/m);
    } finally {
      process.kill(pid, 'SIGCONT');
    }
  });
});
