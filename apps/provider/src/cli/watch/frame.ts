/** `frame`: the lines of `status --watch` for a terminal size. Surplus lines are cut. From four rows on, a hint ends the lines. */
import type { DaemonStatus } from '../../control/daemon-status.js';
import { fit, widthOf } from '../output/columns.js';
import { accountText, earningsFacts, machineText, modelTable, requestsText } from '../output/status-text.js';
import { clean, spanOf } from '../output/terminal.js';
import { jobOutlook, outlookText } from '../output/why-no-jobs.js';
import type { StatusSnapshot } from './status-poller.js';

export interface Size {
  readonly columns: number;
  readonly rows: number;
}

export interface Line {
  readonly text: string;
  readonly style: 'plain' | 'strong' | 'good' | 'bad' | 'dim';
}

const NAME_COLUMNS = 13;
const MAX_COLUMNS = 100;
const MAX_DECISIONS = 5;

export function frame({ status, problem, earnings }: StatusSnapshot, size: Size, now: Date): Line[] {
  const columns = Math.max(1, Math.min(size.columns, MAX_COLUMNS));
  const rows = Math.max(1, size.rows);
  const end = line('q or Ctrl-C ends this view; the provider continues.', 'dim');
  const title = `inference-provider${status === null ? '' : ` ${clean(status.version)}`}`;
  const clock = now.toTimeString().slice(0, 8);
  const body =
    status === null
      ? [line(`NOT RUNNING: ${clean(problem ?? 'the provider is not responding')}. Waiting for the provider.`, 'bad')]
      : [
          ...stateLines(status, columns),
          ...factLines(status, earnings, now.getTime()),
          ...modelLines(status, columns),
          ...decisionLines(status),
        ];
  const whole = [line(placeBeside(title, clock, columns), 'strong'), line('', 'plain'), ...body];
  const room = rows >= 4 ? rows - 2 : rows;
  const shown = whole.slice(0, room);
  const withEnd = rows >= 4 ? [...shown, line('', 'plain'), end] : shown;
  return withEnd.map(({ text, style }) => ({ text: fit(text, columns), style }));
}

function stateLines(status: DaemonStatus, columns: number): Line[] {
  const outlook = jobOutlook(status);
  const style = outlook.state === 'needs_owner' ? 'bad' : outlook.state === 'waiting' ? 'strong' : 'good';
  const next = outlook.next === null ? [] : wrappedLines(`Next: ${outlook.next}`, columns);
  return [
    ...wrappedLines(outlookText(outlook), columns).map((part) => line(part, style)),
    ...next.map((part) => line(part, 'plain')),
    line('', 'plain'),
  ];
}

function factLines(status: DaemonStatus, earnings: StatusSnapshot['earnings'], now: number): Line[] {
  const { connection, trust, account } = status;
  const simulated = status.simulated_enclave ? ' (simulated enclave)' : '';
  const isLinked = account.state === 'linked' || account.state === 'waiting';
  return [
    factLine('Account', accountText(account), isLinked ? 'plain' : 'bad'),
    ...earningsFacts(status, earnings).map(([name, text]) => line(`${name.padEnd(NAME_COLUMNS)}${text}`, 'plain')),
    factLine('Requests', `${bar(status.running_jobs, status.slots)} ${requestsText(status)}`),
    factLine('Machine', machineText(status)),
    factLine('Trust', trust === null ? `not known${simulated}` : `${trust.trust_level}${simulated}`),
    factLine(
      'Coordinator',
      `${clean(status.coordinator)}, ${connection.state === 'connected' ? 'connected' : 'NOT connected'} for ${spanOf(now - connection.since)}`,
    ),
    factLine('Running for', spanOf(now - status.started_at)),
  ];
}

function modelLines(status: DaemonStatus, columns: number): Line[] {
  const table = modelTable(status, columns).map(({ text, isHeading }) => line(text, isHeading ? 'strong' : 'plain'));
  return table.length === 0 ? [] : [line('', 'plain'), ...table];
}

function decisionLines({ coordinator_view: view }: DaemonStatus): Line[] {
  const decisions = (view?.decisions ?? []).slice(0, MAX_DECISIONS).map(({ last_at, text, count }) => {
    const times = count === 1 ? '' : ` (${count} times)`;
    return line(`${clean(last_at).slice(11, 19)}  ${clean(text)}${times}`, 'plain');
  });
  return decisions.length === 0 ? [] : [line('', 'plain'), line('Last decisions of the coordinator (UTC)', 'strong'), ...decisions];
}

function factLine(name: string, text: string, style: Line['style'] = 'plain'): Line {
  return line(`${name.padEnd(NAME_COLUMNS)}${clean(text)}`, style);
}

function line(text: string, style: Line['style']): Line {
  return { text, style };
}

function bar(part: number, whole: number): string {
  const filled = whole === 0 ? 0 : Math.min(10, Math.ceil((10 * part) / whole));
  return `${'█'.repeat(filled)}${'░'.repeat(10 - filled)}`;
}

function placeBeside(first: string, second: string, columns: number): string {
  const gap = columns - widthOf(first) - widthOf(second);
  return gap < 1 ? first : `${first}${' '.repeat(gap)}${second}`;
}

/** Wraps the text, and drops what exceeds three lines. */
function wrappedLines(text: string, columns: number): string[] {
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
