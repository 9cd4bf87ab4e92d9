/**
 * `frame`: the lines of the live view for a terminal size. The most important lines come first; lines that do not fit are cut at the
 * end. Pure.
 */
import type { DaemonStatus } from '../../control/daemon-status.js';
import { fit, left, right, widthOf } from '../output/columns.js';
import { accountText, earnedText } from '../output/status-text.js';
import { clean, dollars, percent, spanOf } from '../output/terminal.js';
import { jobOutlook } from '../output/why-no-jobs.js';
import type { StatusSnapshot } from './status-poller.js';

export interface Size {
  readonly columns: number;
  readonly rows: number;
}

/** Line with its emphasis. */
export interface Line {
  readonly text: string;
  readonly style: 'plain' | 'strong' | 'good' | 'bad' | 'dim';
}

const NAME = 13;
const MAX_COLUMNS = 100;
const MAX_MODELS = 8;
const MAX_DECISIONS = 5;

export function frame({ status, problem, earnings }: StatusSnapshot, size: Size, now: Date): Line[] {
  const columns = Math.max(1, Math.min(size.columns, MAX_COLUMNS));
  const rows = Math.max(1, size.rows);
  const end = line('q or Ctrl-C ends this view; the provider continues.', 'dim');
  const title = `inference-provider${status === null ? '' : ` ${clean(status.version)}`}`;
  const clock = now.toTimeString().slice(0, 8);
  const body =
    status === null
      ? [line(`NOT RUNNING: ${clean(problem ?? 'the provider does not answer')}. Waiting for it.`, 'bad')]
      : [
          ...stateLines(status, columns),
          ...factLines(status, earnings, now.getTime()),
          ...modelLines(status, columns),
          ...viewLines(status),
        ];
  const whole = [line(beside(title, clock, columns), 'strong'), line('', 'plain'), ...body];
  const room = rows >= 4 ? rows - 2 : rows;
  const shown = whole.slice(0, room);
  const withEnd = rows >= 4 ? [...shown, line('', 'plain'), end] : shown;
  return withEnd.map(({ text, style }) => ({ text: fit(text, columns), style }));
}

function stateLines(status: DaemonStatus, columns: number): Line[] {
  const { state, text } = jobOutlook(status);
  const style = state === 'needs_owner' ? 'bad' : state === 'held' ? 'strong' : 'good';
  return [...broken(text, columns).map((part) => line(part, style)), line('', 'plain')];
}

function factLines(status: DaemonStatus, earnings: StatusSnapshot['earnings'], now: number): Line[] {
  const { connection, jobs, host, trust, account } = status;
  const simulated = status.simulated_enclave ? ' (simulated enclave)' : '';
  const isLinked = account.state === 'linked' || account.state === 'waiting';
  return [
    fact('Account', accountText(account), isLinked ? 'plain' : 'bad'),
    ...(earnings === null
      ? viewEarnings(status)
      : [fact('Today', earnedText(earnings.today)), fact('Last 7 days', earnedText(earnings.week))]),
    fact(
      'Jobs',
      `${status.running_jobs} of ${status.slots} ${bar(status.running_jobs, status.slots)}  ${jobs.completed} done, ${jobs.failed} failed, ${jobs.cancelled} cancelled`,
    ),
    fact('Machine', `heat ${host.thermal}, memory ${host.memory_pressure}, power ${host.power}`),
    fact('Trust', trust === null ? `not known${simulated}` : `${trust.trust_level}${simulated}`),
    fact(
      'Coordinator',
      `${clean(status.coordinator)}, ${connection.state === 'connected' ? 'connected' : 'NOT connected'} for ${spanOf(now - connection.since)}`,
    ),
    fact('Running for', spanOf(now - status.started_at)),
  ];
}

function viewEarnings({ coordinator_view: view }: DaemonStatus): Line[] {
  const reported = view?.earnings ?? null;
  if (reported === null) return [];
  const whose = reported.of === 'account' ? 'all machines of the account' : 'held until an account links this machine';
  return [fact('Earned', `${dollars(reported.today_micro_usd)} today (UTC), ${dollars(reported.total_micro_usd)} in all; ${whose}`)];
}

function modelLines({ models, coordinator_view: view }: DaemonStatus, columns: number): Line[] {
  if (models.length === 0) return [];
  const name = Math.max(12, columns - 42);
  const row = (id: string, state: string, speed: string, given: string, share: string): string =>
    `${left(id, name)} ${left(state, 14)}${right(speed, 9)}${right(given, 9)}${right(share, 8)}`;
  const rows = models.slice(0, MAX_MODELS).map(({ id }) => {
    const seen = view?.models.find((model) => model.id === id);
    if (seen === undefined) return line(row(clean(id), '-', '-', '-', '-'), 'plain');
    const state = seen.routable ? seen.state : (seen.gate ?? seen.state);
    const share = seen.share === null ? '-' : percent(seen.share);
    return line(row(clean(id), state.replaceAll('_', ' '), seen.decode_tps.toFixed(1), String(seen.placements), share), 'plain');
  });
  const more = models.length - rows.length;
  return [
    line('', 'plain'),
    line(row('Model', 'state', 'tokens/s', 'requests', 'share'), 'strong'),
    ...rows,
    ...(more > 0 ? [line(`and ${more} more`, 'dim')] : []),
  ];
}

function viewLines({ coordinator_view: view }: DaemonStatus): Line[] {
  if (view === null) return [];
  const steps = view.next_steps.filter(({ code }) => code !== 'nothing');
  const decisions = view.decisions.slice(0, MAX_DECISIONS).map(({ last_at, text, count }) => {
    const times = count === 1 ? '' : ` (${count} times)`;
    return line(`${clean(last_at).slice(11, 19)}  ${clean(text)}${times}`, 'plain');
  });
  return [
    ...(steps.length === 0
      ? []
      : [line('', 'plain'), line('Next steps', 'strong'), ...steps.map(({ text }) => line(clean(text), 'plain'))]),
    ...(decisions.length === 0 ? [] : [line('', 'plain'), line('Last decisions of the coordinator (UTC)', 'strong'), ...decisions]),
  ];
}

function fact(name: string, text: string, style: Line['style'] = 'plain'): Line {
  return line(`${name.padEnd(NAME)}${clean(text)}`, style);
}

function line(text: string, style: Line['style']): Line {
  return { text, style };
}

function bar(part: number, whole: number): string {
  const filled = whole === 0 ? 0 : Math.min(10, Math.ceil((10 * part) / whole));
  return `${'█'.repeat(filled)}${'░'.repeat(10 - filled)}`;
}

function beside(first: string, second: string, columns: number): string {
  const gap = columns - widthOf(first) - widthOf(second);
  return gap < 1 ? first : `${first}${' '.repeat(gap)}${second}`;
}

/** Wraps the text to at most three lines. */
function broken(text: string, columns: number): string[] {
  const lines: string[] = [];
  let current = '';
  for (const word of clean(text).split(' ')) {
    if (current !== '' && widthOf(current) + 1 + widthOf(word) > columns) {
      lines.push(current);
      current = '';
    }
    current = current === '' ? word : `${current} ${word}`;
  }
  return [...lines, current].slice(0, 3);
}
