/** Text of `status`: one headline, one reason, one next step, and numbers in columns. */
import { describe, expect, it } from 'vitest';
import { availabilityText, statusLines } from '../../src/cli/output/status-text.js';
import { jobOutlook, outlookText } from '../../src/cli/output/why-no-jobs.js';
import type { DaemonStatus } from '../../src/control/daemon-status.js';
import { runningStatus } from '../support/owner-command.js';

const lost = { state: 'not_connected', since: 0, problem: 'the network is down', retry_at: null } as const;
const away = (code: string, text: string): NonNullable<DaemonStatus['availability']> => ({
  state: 'away',
  reasons: [{ code, text, until: null }],
  next_change_at: null,
  pause: null,
  keeps_awake: false,
});
const textOf = (changes: Partial<DaemonStatus> = {}): string => statusLines(runningStatus('/d', changes), Date.now()).join('\n');

it('does not claim to be ready without a connection', () => {
  const text = textOf({ connection: lost });
  expect(text).toContain('NOT connected');
  expect(text).toMatch(/^State {8}Not accepting requests\nReason {7}Not connected to the coordinator: the network is down\.\nNext {9}/);
  expect(text).not.toContain('eady for requests');
  expect(textOf()).toMatch(/^State {8}Ready for requests\nNext {9}None needed\.$/m);
});

it('names the reason for a closed machine once, with one next step', () => {
  const availability = away('outside_schedule', 'Outside your schedule until 22:00.');
  expect(textOf({ availability })).toMatch(
    /^State {8}Not accepting requests\nReason {7}Outside your schedule until 22:00\.\nNext {9}None needed\./,
  );
  expect(outlookText(jobOutlook(runningStatus('/d', { availability })))).toBe('Not accepting requests: outside your schedule until 22:00.');
  expect(availabilityText(availability)).toBe('Not accepting requests: outside your schedule until 22:00.');
  expect(jobOutlook(runningStatus('/d', { availability: away('on_battery', 'This machine runs on battery.') })).next).toBe(
    'Connect the power adapter.',
  );
  const filevault = away('another_code', 'FileVault is off.');
  expect(outlookText(jobOutlook(runningStatus('/d', { availability: filevault })))).toBe('Not accepting requests: FileVault is off.');
  for (const text of textOf({ availability }).split('\n')) expect(text.match(/Outside/g)?.length ?? 0).toBeLessThanOrEqual(1);
});

it('shows a lost decision as reason only while no request comes', () => {
  const at = (seconds: number): string => new Date(Date.UTC(2026, 0, 1, 0, 0, seconds)).toISOString();
  const lostOne = {
    model: 'pico',
    outcome: 'not_chosen',
    reason: 'slower',
    text: 'Not chosen: slower.',
    count: 3,
    first_at: at(0),
    last_at: at(9),
  };
  const won = { ...lostOne, outcome: 'chosen', reason: 'cheapest', text: 'Chosen.', last_at: at(8) };
  const reasonWith = (decisions: readonly object[]): string | null => {
    const running = runningStatus('/d');
    const models = [{ id: 'pico', routable: true, demand: { requests_last_5_minutes: 4, waiting_requests: 0, expected_wait_ms: null } }];
    const view = { ...running.coordinator_view, server_time: at(10), next_steps: [], models, decisions };
    return jobOutlook({ ...running, coordinator_view: view as unknown as NonNullable<DaemonStatus['coordinator_view']> }).reason;
  };
  expect(reasonWith([lostOne])).toBe('Last decision: Not chosen: slower.');
  expect(reasonWith([lostOne, won])).toBeNull();
});

describe('numbers', () => {
  const sum = (earned: number, requests: number, tokens: number) => ({ earned, requests, tokens, images: 0, duty: 0.5 });

  it('stand in columns', () => {
    const earnings = { today: sum(1, 1, 2), week: sum(123_456_789, 12_345, 1_234_567), models: [], days: [] };
    const lines = statusLines(runningStatus('/d'), Date.now(), earnings);
    const [today = '', week = ''] = lines.filter((line) => /^(?:Today|Last 7 days)/.test(line));
    expect(today.length).toBe(week.length);
    for (const unit of [' request', ' tokens', 'busy']) expect(today.indexOf(unit)).toBe(week.indexOf(unit));
    expect(week).toContain('$123.456789');
    expect(week).toContain('12,345 requests');
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(80);
  });
});
