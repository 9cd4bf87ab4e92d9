/** Live view: content at any size, and restoration of the terminal. */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { widthOf } from '../../src/cli/output/columns.js';
import { frame, type Line } from '../../src/cli/watch/frame.js';
import type { StatusSnapshot } from '../../src/cli/watch/status-poller.js';
import { plainLine } from '../../src/cli/watch/watch.js';
import { ControlServer } from '../../src/control/control-server.js';
import type { DaemonStatus } from '../../src/control/daemon-status.js';
import { get } from '../../src/control/route.js';
import { startingStatus } from '../../src/daemon/status.js';
import { Terminal } from '../support/terminal.js';

const MAIN = fileURLToPath(new URL('../../dist/main.js', import.meta.url));
const NOW = new Date('2026-01-01T00:05:00.000Z');

const base = startingStatus(
  { dataDir: '/d', socketUrl: 'ws://gateway.example/provider/v1/socket', simulatedEnclave: true, models: [{ path: '/pico.gguf' }] },
  NOW.getTime() - 3_600_000,
);
const running: DaemonStatus = {
  ...base,
  state: 'running',
  engine: 'ready',
  provider_id: '0'.repeat(32),
  connection: { state: 'connected', since: NOW.getTime() - 60_000, problem: null, retry_at: null },
  account: { state: 'linked', account_name: 'Ada 漢字漢字', reason: null, remedy: null },
  trust: { type: 'trust', trust_level: 'self_signed', routable: true, status: 'online', parts: [] },
  models: Array.from({ length: 12 }, (_, index) => ({ id: `owner/a-model-with-a-rather-long-name-${index}`, context_length: 4096 })),
  slots: 4,
  running_jobs: 3,
  jobs: { completed: 12_345, failed: 1, cancelled: 2 },
  coordinator_problem: 'the coordinator did not answer in time',
};
const sum = { requests: 12, tokens: 34_567, images: 0, earned: 12_345, duty: 0.034 };
const earnings = { today: sum, week: sum, models: [], days: [] };
const snapshot: StatusSnapshot = { status: running, problem: null, earnings };

/** A beginning of commands to a terminal, and a turn of the writing direction. */
const CONTROLS = new RegExp(['\u001b', '\u202e'].join('|'));
const WIPE = '\u001b[2J';
const textOf = (lines: readonly Line[]): string => lines.map(({ text }) => text).join('\n');

describe('a picture', () => {
  it('fits every size and cuts the least important lines first', () => {
    for (const state of [snapshot, { ...snapshot, status: base }, { status: null, problem: 'gone', earnings: null }] as StatusSnapshot[]) {
      for (const columns of [1, 2, 20, 39, 80, 81, 240]) {
        for (const rows of [1, 2, 3, 4, 5, 10, 24, 100]) {
          const lines = frame(state, { columns, rows }, NOW);
          expect(lines.length).toBeLessThanOrEqual(rows);
          for (const { text } of lines) expect(widthOf(text)).toBeLessThanOrEqual(columns);
        }
      }
    }
    const whole = textOf(frame(snapshot, { columns: 80, rows: 50 }, NOW));
    expect(whole).toContain('Serving 3 requests.');
    expect(whole).toContain('Account      Ada 漢字漢字');
    expect(whole).toContain('Today           $0.012345       12 requests         34,567 tokens   busy 3.4%');
    expect(whole).toContain('and 4 more');
    expect(whole).toMatch(/owner\/a-model.*…/);
    const low = textOf(frame(snapshot, { columns: 80, rows: 8 }, NOW));
    expect(low).toContain('Serving 3 requests.');
    expect(low).not.toContain('Machine');
    expect(low).toContain('q or Ctrl-C');
  });

  it('contains no control characters', () => {
    const account = { state: 'linked', account_name: '\u001b[2JAda\u202e\n', reason: null, remedy: null } as const;
    expect(textOf(frame({ ...snapshot, status: { ...running, account } }, { columns: 80, rows: 24 }, NOW))).not.toMatch(CONTROLS);
  });

  it('says why no requests come', () => {
    const stateOf = (status: Partial<DaemonStatus>): string =>
      textOf(frame({ ...snapshot, status: { ...running, ...status } }, { columns: 80, rows: 24 }, NOW));
    const lost = { state: 'not_connected', since: 0, problem: 'the network is down', retry_at: null } as const;
    expect(stateOf({ connection: lost })).toContain('Not accepting requests: not connected to the coordinator: the network is down.');
    expect(stateOf({ models: [] })).toContain('Not accepting requests: no model is served.');
    expect(stateOf({ state: 'starting' })).toContain('Starting');
    const remedy = 'Turn on System Integrity Protection.';
    const untrusted: DaemonStatus['trust'] = {
      type: 'trust',
      trust_level: 'none',
      routable: false,
      status: 'untrusted',
      status_remedy: remedy,
      parts: [],
    };
    expect(stateOf({ trust: untrusted })).toContain(`Not accepting requests: untrusted.\nNext: ${remedy}`);
  });

  it('is one line without a terminal', () => {
    expect(plainLine(snapshot)).toBe(
      'running connected account=linked running=3 done=12345 failed=1 earned_today_micro_usd=12345  Serving 3 requests.',
    );
    expect(plainLine({ status: null, problem: 'no provider runs', earnings: null })).toBe('not running: no provider runs');
  });
});

describe('status --watch', () => {
  let dataDir: string;
  let daemon: ControlServer | null = null;
  let terminal: Terminal | null = null;
  let status: DaemonStatus = running;
  const startDaemon = async (): Promise<void> => {
    daemon = await ControlServer.open(dataDir, [get('/v1/status', async () => status)]);
  };
  const stopDaemon = async (): Promise<void> => {
    await daemon?.close();
    daemon = null;
  };
  beforeEach(() => {
    status = running;
    dataDir = temporaryDirectory('watch');
  });
  afterEach(async () => {
    await terminal?.dispose();
    terminal = null;
    await stopDaemon();
  });
  const start = (columns: number, rows: number): Terminal => {
    terminal = new Terminal(`${process.execPath} ${MAIN} status --watch --data-dir ${dataDir}`, { columns, rows });
    return terminal;
  };

  it('follows restarts and resizes, and restores the terminal', async () => {
    await startDaemon();
    const view = start(80, 24);
    await view.shows('Serving 3 requests.');
    expect(await view.buffer()).toBe('alternate');
    status = { ...running, running_jobs: 1 };
    await view.shows('Serving 1 request.');
    // No full wipe without a resize, because a wipe flickers.
    expect(view.output).not.toContain(WIPE);
    await view.resize(40, 8);
    const small = await view.shows(/^inference-provider.{2,25}$/m);
    expect(small).toContain('Serving 1 request.');
    expect(small).toContain('q or Ctrl-C');
    await view.resize(100, 40);
    await view.shows('and 4 more');
    await stopDaemon();
    await view.shows('NOT RUNNING');
    await startDaemon();
    await view.shows('Serving 1 request.');
    view.type('q');
    expect(await view.exit).toBe(0);
    expect(await view.buffer()).toBe('normal');
    const left = (await view.lines()).join('\n');
    expect(left).toContain('before');
    expect(left).toContain('after');
    expect(left).not.toContain('Serving 1');
    expect(view.output.lastIndexOf('\u001b[?25h')).toBeGreaterThan(view.output.lastIndexOf('\u001b[?25l'));
    expect(view.settings()).toMatch(/(^|\s)icanon/m);
    expect(view.settings()).toMatch(/(^|\s)echo\s/m);
  });

  it('ends on Ctrl-C while nothing runs', async () => {
    const view = start(80, 24);
    await view.shows('NOT RUNNING');
    view.type('\u0003');
    expect(await view.exit).toBe(0);
    expect(await view.buffer()).toBe('normal');
    expect(view.settings()).toMatch(/(^|\s)icanon/m);
  });

  it('prints a line per change without a terminal, until the pipe closes', async () => {
    await startDaemon();
    const child = spawn(process.execPath, [MAIN, 'status', '--watch', '--data-dir', dataDir], { stdio: ['ignore', 'pipe', 'inherit'] });
    const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
    let text = '';
    const shows = (part: string): Promise<void> =>
      new Promise((resolve) => {
        const snapshot = (): void => {
          if (text.includes(part)) resolve();
        };
        child.stdout.on('data', snapshot);
        snapshot();
      });
    child.stdout.setEncoding('utf8');
    child.stdout.on('data', (data: string) => {
      text += data;
    });
    await shows('Serving 3 requests.\n');
    status = { ...running, running_jobs: 1 };
    await shows('Serving 1 request.\n');
    expect(text).not.toContain('\u001b');
    expect(text.trimEnd().split('\n')).toHaveLength(2);
    child.stdout.destroy();
    status = running;
    expect(await ended).toBe(0);
  });
});
