/**
 * The menu bar item: its Swift sources parse, it says what `status` says, and the command installs it with launchd. With
 * MENU_BAR_PROGRAM and MENU_BAR_CHECKS (scripts/ci/check-swift.sh) the built programs run against a control socket.
 */
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { parse } from 'plist';
import Parser from 'tree-sitter';
import Swift from 'tree-sitter-swift';
import { beforeEach, describe, expect, it } from 'vitest';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { jobOutlook } from '../../src/cli/output/why-no-jobs.js';
import { controlPath } from '../../src/control/address.js';
import { availabilityRoutes } from '../../src/control/availability-routes.js';
import { ControlServer } from '../../src/control/control-server.js';
import type { AvailabilityStatus, DaemonStatus } from '../../src/control/daemon-status.js';
import { get } from '../../src/control/route.js';
import { hideMenuBar, MenuBarError, type MenuBarHost, showMenuBar } from '../../src/service/menu-bar.js';
import { endMenuBar, partsOf } from '../../src/service/uninstall.js';
import { runCommand, runningStatus } from '../support/owner-command.js';

const FOLDER = fileURLToPath(new URL('../../menu-bar/', import.meta.url));
const { MENU_BAR_PROGRAM, MENU_BAR_CHECKS } = process.env;
const OUTLOOKS = join(FOLDER, 'checks/outlooks.json');

describe('its Swift sources', () => {
  const parser = new Parser();
  parser.setLanguage(Swift as unknown as Parser.Language);
  const files = ['Sources', 'checks', 'stand-ins'].flatMap((folder) =>
    readdirSync(FOLDER + folder)
      .filter((name) => name.endsWith('.swift'))
      .map((name) => `${folder}/${name}`),
  );

  it.each(files)('%s parses', (file) => {
    expect(parser.parse(readFileSync(FOLDER + file, 'utf8')).rootNode.hasError).toBe(false);
  });

  it('use AppKit in one file', () => {
    const users = files.filter((file) => file.startsWith('Sources') && /^import AppKit$/m.test(readFileSync(FOLDER + file, 'utf8')));
    expect(users).toEqual(['Sources/MenuBar.swift']);
  });
});

/** Members that the menu reads. */
function shownStatus({
  state,
  coordinator,
  connection,
  trust,
  models,
  availability,
  running_jobs,
  coordinator_view,
}: DaemonStatus): object {
  return { state, coordinator, connection, trust, models, availability, running_jobs, coordinator_view };
}

const closed = (state: AvailabilityStatus['state'], ...texts: string[]): AvailabilityStatus => ({
  state,
  reasons: texts.map((text) => ({ code: 'x', text, until: null })),
  next_change_at: null,
  pause: null,
  keeps_awake: false,
});

type View = NonNullable<DaemonStatus['coordinator_view']>;
function view(models: readonly Partial<View['models'][number]>[], decisions: readonly Partial<View['decisions'][number]>[] = []): View {
  const earnings = { of: 'account', today_micro_usd: 1_234_567, total_micro_usd: 9_000_000 };
  // Only members that the outlook reads.
  return { models, decisions, earnings, next_steps: [], server_time: '2026-10-01T12:00:00.000Z' } as unknown as View;
}
const demand = (count: number) => ({ requests_last_5_minutes: count }) as View['models'][number]['demand'];
const trust: DaemonStatus['trust'] = { type: 'trust', trust_level: 'self_signed', routable: false, status: 'below_trust_floor', parts: [] };

const CASES: Readonly<Record<string, Partial<DaemonStatus>>> = {
  starting: { state: 'starting' },
  stopping: { state: 'stopping' },
  paused: { availability: { ...closed('away', 'paused until 18:00'), pause: { until: 1 } } },
  leaving: { availability: closed('leaving', 'This machine runs on battery.', 'outside your schedule') },
  'away without a reason': { availability: closed('away') },
  'not connected': { connection: { state: 'not_connected', since: 0, problem: 'the name cannot be resolved', retry_at: 1 } },
  'not connected yet': { connection: { state: 'not_connected', since: 0, problem: null, retry_at: null } },
  'no model': { models: [] },
  'not verified yet': { trust: null },
  'not trusted': { trust },
  'no view': { coordinator_view: null },
  'one request': { running_jobs: 1 },
  'two requests': { running_jobs: 2 },
  'no model open': { coordinator_view: view([{ state: 'on_demand', gate: null, routable: false, demand: demand(1) }]) },
  'a gate': { coordinator_view: view([{ state: 'ready', gate: 'price_too_high', routable: false, demand: demand(1) }]) },
  idle: { coordinator_view: view([{ state: 'ready', gate: null, routable: true, demand: demand(0) }]) },
  'not chosen': {
    coordinator_view: view(
      [{ state: 'ready', gate: null, routable: true, demand: demand(3) }],
      [{ outcome: 'not_chosen', text: 'Not chosen: slower' }],
    ),
  },
  'not chosen, but chosen five minutes ago': {
    coordinator_view: view(
      [{ state: 'ready', gate: null, routable: true, demand: demand(3) }],
      [
        { outcome: 'not_chosen', text: 'Not chosen: slower', last_at: '2026-10-01T11:59:59.000Z' },
        { outcome: 'chosen', text: 'Chosen: fastest', last_at: '2026-10-01T11:55:00.000Z' },
      ],
    ),
  },
  'not chosen, and chosen longer ago': {
    coordinator_view: view(
      [{ state: 'ready', gate: null, routable: true, demand: demand(3) }],
      [
        { outcome: 'not_chosen', text: 'Not chosen: slower', last_at: '2026-10-01T11:59:59.000Z' },
        { outcome: 'chosen', text: 'Chosen: fastest', last_at: '2026-10-01T11:54:59.999Z' },
      ],
    ),
  },
  chosen: {
    coordinator_view: view(
      [{ state: 'ready', gate: null, routable: true, demand: demand(3) }],
      [{ outcome: 'chosen', text: 'Chosen: fastest' }],
    ),
  },
};

it('gives the headline and reason of `status`', () => {
  const cases = Object.entries(CASES).map(([name, changes]) => {
    const status = runningStatus('/d', {
      ...changes,
      connection: { state: 'connected', since: 0, problem: null, retry_at: null, ...changes.connection },
    });
    const { state, headline, reason } = jobOutlook(status);
    return { name, status: shownStatus(status), outlook: { state, headline, reason } };
  });
  const text = `${JSON.stringify(cases, null, 2)}\n`;
  // `UPDATE_OUTLOOKS=1 npx vitest run …` rewrites the cases that the Swift program is checked against.
  if (process.env.UPDATE_OUTLOOKS === '1') writeFileSync(OUTLOOKS, text);
  expect(JSON.parse(readFileSync(OUTLOOKS, 'utf8'))).toEqual(JSON.parse(text));
  expect(new Set(cases.map(({ outlook }) => outlook.state))).toEqual(new Set(['serving', 'idle', 'waiting', 'needs_owner']));
});

describe('`menu-bar`', () => {
  let dataDir: string;
  let said: string[];
  let host: MenuBarHost;
  beforeEach(() => {
    dataDir = temporaryDirectory('menu-bar');
    said = [];
    const source = join(dataDir, 'source');
    mkdirSync(join(source, 'bin'), { recursive: true });
    let isLoaded = false;
    host = {
      platform: 'darwin',
      uid: 501,
      folder: join(dataDir, 'LaunchAgents'),
      source,
      run: async (program, args) => {
        said.push([program, ...args].join(' '));
        if (args[0] === 'bootstrap') isLoaded = true;
        if (args[0] === 'bootout') isLoaded = false;
        if (program === '/bin/sh') writeFileSync(args[1] as string, 'built');
        return { code: args[0] === 'print' && !isLoaded ? 113 : 0, stdout: 'state = running\npid = 7\n', stderr: '' };
      },
    };
  });

  const program = () => join(dataDir, 'menu-bar/inference-menu-bar');
  const plist = () => join(host.folder, `${labelIn(host.folder)}.plist`);
  const labelIn = (folder: string) => readdirSync(folder)[0]?.replace(/\.plist$/, '') ?? '';

  it('copies the built program, starts it with launchd, again with a new one, and removes it', async () => {
    writeFileSync(join(host.source, 'bin/inference-menu-bar'), 'prebuilt');
    await showMenuBar(dataDir, host);
    expect(readFileSync(program(), 'utf8')).toBe('prebuilt');
    expect(parse(readFileSync(plist(), 'utf8'))).toMatchObject({
      ProgramArguments: [program(), '--socket', controlPath(dataDir)],
      RunAtLoad: true,
      KeepAlive: { SuccessfulExit: false },
      ProcessType: 'Interactive',
      LimitLoadToSessionType: 'Aqua',
    });
    expect(partsOf({ kind: 'clone', version: '1.0.0', root: '/r' }, dataDir)).toContainEqual(
      expect.objectContaining({ kind: 'program', path: join(dataDir, 'menu-bar') }),
    );
    writeFileSync(join(host.source, 'bin/inference-menu-bar'), 'newer');
    said.length = 0;
    await showMenuBar(dataDir, host);
    expect(readFileSync(program(), 'utf8')).toBe('newer');
    const verbs = said.map((line) => line.split(' ')[1]).filter((verb) => verb !== 'print');
    expect(verbs).toEqual(['bootout', 'enable', 'bootstrap']);
    await hideMenuBar(dataDir, host);
    expect([existsSync(program()), readdirSync(host.folder)]).toEqual([false, []]);
  });

  it('builds a program that the package lacks, and says why it cannot', async () => {
    await showMenuBar(dataDir, host);
    expect(said[0]).toBe(`/bin/sh ${join(host.source, 'build.sh')} ${program()}`);
    expect(readFileSync(program(), 'utf8')).toBe('built');
    const failing: MenuBarHost = {
      ...host,
      run: async () => ({ code: 1, stdout: '', stderr: 'swiftc is missing: run xcode-select --install\n' }),
    };
    await expect(showMenuBar(dataDir, failing)).rejects.toThrow('swiftc is missing: run xcode-select --install');
    expect(await endMenuBar(dataDir, failing)).toEqual([expect.stringContaining('launchctl print was refused (1): swiftc')]);
    await expect(showMenuBar(dataDir, { ...host, platform: 'linux' })).rejects.toThrow(MenuBarError);
    expect(await endMenuBar(dataDir, { ...failing, platform: 'linux' })).toEqual([]);
  });

  it.skipIf(process.platform === 'darwin')('needs a Mac', async () => {
    expect(await runCommand(dataDir, 'menu-bar', 'on')).toMatchObject({ code: 1, stderr: 'The menu bar item needs macOS.\n' });
    expect(await runCommand(dataDir, 'menu-bar', '--help')).toMatchObject({ code: 0, stdout: expect.stringContaining('menu-bar off') });
  });
});

describe.skipIf(MENU_BAR_PROGRAM === undefined || MENU_BAR_CHECKS === undefined)('the built program', () => {
  const run = async (program = '', ...args: string[]) => (await promisify(execFile)(program, args)).stdout;

  it('reads the status of an agent, pauses it and resumes it', async () => {
    const dataDir = temporaryDirectory('menu-bar');
    const { availability: serving } = runningStatus(dataDir);
    let pause: { readonly until: number | null } | null = null;
    const availability = () => (pause === null ? serving : { ...closed('away', 'paused'), pause });
    const pauses: (number | null)[] = [];
    const server = await ControlServer.open(dataDir, [
      get('/v1/status', async () =>
        runningStatus(dataDir, { availability: availability(), coordinator_view: CASES.idle?.coordinator_view ?? null }),
      ),
      ...availabilityRoutes({
        availability,
        setPause: (next) => {
          pause = next;
          if (next !== null) pauses.push(next.until);
        },
      }),
    ]);
    try {
      const socket = controlPath(dataDir);
      expect((await run(MENU_BAR_PROGRAM, '--socket', socket, '--print')).trim().split('\n')).toEqual([
        '[bolt.circle]',
        'Ready for requests',
        'No requests for these models in the last five minutes.',
        '-',
        'Earned today (UTC): $1.23',
        '-',
        '> Pause for 1 Hour',
        '> Pause Until Resumed',
        '> Open Console',
        '-',
        '> Quit Menu Bar Item',
      ]);
      const start = Date.now();
      expect(await run(MENU_BAR_CHECKS, OUTLOOKS, socket)).toBe('all checks hold\n');
      expect(pauses).toEqual([expect.any(Number), null]);
      expect(Math.abs((pauses[0] ?? 0) - start - 3_600_000)).toBeLessThan(60_000);
      expect(await run(MENU_BAR_PROGRAM, '--socket', socket, '--print')).toContain('> Resume\n');
    } finally {
      await server.close();
    }
    expect(await run(MENU_BAR_PROGRAM, '--socket', controlPath(dataDir), '--print')).toContain('The provider is not running\n');
  });
});
