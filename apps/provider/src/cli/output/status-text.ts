/** Formats the status of a daemon as text for `status`, and parts of it for `status --watch`, `pause` and `resume`. */
import type { ProviderStatusAnswer } from '@inference/protocol';
import type { EarningsView } from '../../account/earnings.js';
import type { AvailabilityStatus, DaemonStatus } from '../../control/daemon-status.js';
import type { LinkStatus } from '../../control/link-status.js';
import { momentText } from '../../host/availability/moment-text.js';
import { left, right } from './columns.js';
import { clean, count, dollars, percent, spanOf, wrapped } from './terminal.js';
import { closedText, jobOutlook, outlookText } from './why-no-jobs.js';

const NAME_COLUMNS = 13;
const MAX_DECISIONS = 6;
const MAX_COLUMNS = 80;

/**
 * Lines of `status`: state, reason and next step, then the facts.
 *
 * @param now Milliseconds since 1970.
 * @param earnings Null if unknown.
 */
export function statusLines(status: DaemonStatus, now: number, earnings: EarningsView | null = null): string[] {
  const { version, pid, started_at, coordinator_view: view } = status;
  const { headline, reason, next } = jobOutlook(status);
  return [
    ...entry('State', headline),
    ...(reason === null ? [] : entry('Reason', reason)),
    ...entry('Next', next ?? 'None needed.'),
    '',
    ...entry('Account', accountText(status.account)),
    ...earningsFacts(status, earnings).flatMap(([name, text]) =>
      earnings === null ? entry(name, text) : `${name.padEnd(NAME_COLUMNS)}${text}`,
    ),
    `${'Requests'.padEnd(NAME_COLUMNS)}${requestsText(status)}`,
    '',
    ...modelTable(status, MAX_COLUMNS).map(({ text }) => text),
    '',
    ...entry('Coordinator', connectionText(status, now)),
    ...entry('Trust', trustText(status)),
    ...consoleLines(status, now),
    ...entry('Machine', machineText(status)),
    ...entry('Provider', `${version}, process ${pid}, running for ${spanOf(now - started_at)}`),
    ...(status.update == null ? [] : entry('Update', status.update.text)),
    ...settingsLines(status),
    ...(view === null ? entry('Network', `no data: ${status.coordinator_problem ?? 'not connected'}`) : decisionLines(view)),
  ];
}

/**
 * Names and texts of the earnings. `earnings`, of this machine, were requested separately; the sums in the status are less detailed, and
 * may be of the whole account. Empty if neither is known.
 */
export function earningsFacts({ coordinator_view: view }: DaemonStatus, earnings: EarningsView | null): (readonly [string, string])[] {
  if (earnings !== null)
    return [
      ['Today', earnedText(earnings.today)],
      ['Last 7 days', earnedText(earnings.week)],
    ];
  const reported = view?.earnings ?? null;
  if (reported === null) return [];
  const whose = reported.of === 'account' ? 'all machines of the account' : 'held until an account links this machine';
  return [['Earned', `${dollars(reported.today_micro_usd)} today (UTC), ${dollars(reported.total_micro_usd)} in all; ${whose}`]];
}

/** Columns of the same width in each line. `duty`: share of the time in which the machine worked on requests. */
function earnedText({ earned, requests, tokens, duty }: EarningsView['today']): string {
  const busy = duty === null ? '' : right(`busy ${percent(duty)}`, 12);
  return `${right(dollars(earned), 12)}${right(`${count(requests)} ${requests === 1 ? 'request ' : 'requests'}`, 18)}${right(`${count(tokens)} tokens`, 22)}${busy}`;
}

export function requestsText({ running_jobs, slots, jobs }: DaemonStatus): string {
  const { completed, failed, cancelled } = jobs;
  return `${running_jobs} of ${slots} running; ${count(completed)} completed, ${count(failed)} failed, ${count(cancelled)} canceled`;
}

export function machineText({ host, availability }: DaemonStatus): string {
  const awake = availability?.keeps_awake === true ? ', system sleep prevented' : '';
  return `heat ${host.thermal}, memory ${host.memory_pressure}, power ${host.power}${awake}`;
}

interface TableLine {
  readonly text: string;
  readonly isHeading: boolean;
}

const MAX_MODELS = 8;

/** Empty without models. */
export function modelTable({ models, coordinator_view: view }: DaemonStatus, columns: number): TableLine[] {
  if (models.length === 0) return [];
  const name = Math.max(12, columns - 42);
  const row = (id: string, state: string, speed: string, placements: string, share: string): string =>
    `${left(id, name)} ${left(state, 14)}${right(speed, 9)}${right(placements, 9)}${right(share, 8)}`;
  const rows = models.slice(0, MAX_MODELS).map(({ id, vision }) => {
    const label = `${clean(id)}${vision === true ? ' (vision)' : ''}`;
    const seen = view?.models.find((model) => model.id === id);
    if (seen === undefined) return row(label, '-', '-', '-', '-');
    // `gate`: why the model gets no requests now. `share`: of the model's placements since this machine offers it.
    const state = (seen.routable ? seen.state : (seen.gate ?? seen.state)).replaceAll('_', ' ');
    const speed = `${seen.measured_jobs === 0 ? '~' : ''}${seen.decode_tps.toFixed(1)}`;
    return row(label, state, speed, count(seen.placements), seen.share === null ? '-' : percent(seen.share));
  });
  const more = models.length - rows.length;
  return [
    { text: row('Model', 'state', 'tokens/s', 'requests', 'share'), isHeading: true },
    ...[...rows, ...(more > 0 ? [`and ${more} more`] : [])].map((text) => ({ text, isHeading: false })),
  ];
}

function connectionText({ connection, coordinator }: DaemonStatus, now: number): string {
  const { state, since, problem, retry_at } = connection;
  if (state === 'connected') return `connected to ${coordinator} for ${spanOf(now - since)}`;
  const again = retry_at === null ? '' : `; retrying in ${spanOf(retry_at - now)}`;
  return `NOT connected to ${coordinator} for ${spanOf(now - since)}${problem === null ? '' : `: ${problem}`}${again}`;
}

function trustText({ trust, simulated_enclave, connection }: DaemonStatus): string {
  const simulated = simulated_enclave ? ' (simulated enclave)' : '';
  if (connection.state !== 'connected') return `unknown until connected${simulated}`;
  if (trust === null) return `unknown${simulated}`;
  return `${trust.trust_level}${simulated}, ${trust.routable ? 'ready for requests' : trust.status.replaceAll('_', ' ')}`;
}

function consoleLines({ availability, remote_control: remote }: DaemonStatus, now: number): string[] {
  const from = availability?.pause?.console;
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const by = from?.account == null || from.account === '' ? '' : ` by ${clean(from.account)}`;
  return [
    ...(from === undefined ? [] : entry('Console', `Paused from the console at ${momentText(from.at, zone, now)}${by}.`)),
    ...(remote?.allowed === false ? entry('Console', 'Control from the console is off: inference-provider remote-control on') : []),
  ];
}

function settingsLines({ settings, hardening }: DaemonStatus): string[] {
  const { problem, needs_restart, path } = settings;
  const open = [
    ...(hardening.core_dumps === 'on' ? ['a crash may write a core dump'] : []),
    // `none`: no confinement.
    ...(hardening.engine_network === 'none'
      ? [`the engine may use the network: ${hardening.engine_network_problem ?? 'unknown reason'}`]
      : []),
  ];
  return [
    ...(problem === null ? [] : entry('Settings', `NOT applied: ${problem}. The previous settings stay in effect.`)),
    ...(problem !== null || needs_restart.length === 0
      ? []
      : entry('Settings', `${needs_restart.join(', ')} of ${path}: to apply, run: inference-provider restart`)),
    ...(open.length === 0 ? [] : entry('Hardening', open.join('; '))),
  ];
}

/** Why the coordinator placed requests on this machine or not. */
function decisionLines({ decisions }: ProviderStatusAnswer): string[] {
  return [
    ...(decisions.length === 0 ? [] : ['', 'Last decisions of the coordinator (UTC)']),
    ...decisions.slice(0, MAX_DECISIONS).flatMap(({ last_at, count: times, text, model }) => {
      const often = times === 1 ? '' : ` (${times} times)`;
      return wrapped(`  ${clockTime(last_at)}  `, `${text}${often} ${model}`);
    }),
  ];
}

function entry(name: string, text: string): string[] {
  return wrapped(name.padEnd(NAME_COLUMNS), text);
}

function clockTime(iso: string): string {
  return clean(iso).slice(11, 19);
}

export function accountText({ state, account_name, reason, remedy }: LinkStatus): string {
  switch (state) {
    case 'linked':
      return account_name === null || account_name === '' ? 'linked' : account_name;
    case 'waiting':
      return 'signed in; will be confirmed at the next connection';
    case 'none':
      return `none. ${remedy ?? ''}`;
    default:
      return `not linked: ${(reason ?? state).replaceAll('_', ' ')}. ${remedy ?? ''}`;
  }
}

/** Answer of `pause` and `resume`: whether the machine accepts requests, and if not, why. */
export function availabilityText(availability: AvailabilityStatus): string {
  return availability.state === 'serving' ? 'Accepting requests.' : outlookText(closedText(availability));
}
