/** Formats the status of a daemon as text. Pure. */
import type { ProviderStatusAnswer } from '@inference/protocol';
import type { EarningsView } from '../../account/earnings.js';
import type { AvailabilityStatus, DaemonStatus } from '../../control/daemon-status.js';
import type { LinkStatus } from '../../control/link-status.js';
import { clean, dollars, percent, spanOf, wrapped } from './terminal.js';
import { jobOutlook } from './why-no-jobs.js';

const HEAD = 13;
/** Maximum number of listed decisions. */
const MAX_DECISIONS = 6;

/** Output lines without line feeds. `now` in milliseconds; `earnings` null if unknown. */
export function statusLines(status: DaemonStatus, now: number, earnings: EarningsView | null = null): string[] {
  const { version, pid, started_at, running_jobs, slots, jobs, host, coordinator_view: view } = status;
  return [
    ...entry('State', jobOutlook(status).text),
    ...entry('Account', accountText(status.account)),
    ...(earnings === null ? [] : [...entry('Today', earnedText(earnings.today)), ...entry('Last 7 days', earnedText(earnings.week))]),
    ...entry('Provider', `${version}, process ${pid}, ${status.state} for ${spanOf(now - started_at)}`),
    ...entry('Coordinator', connectionText(status, now)),
    ...entry('Trust', trustText(status)),
    ...entry('Serving', availabilitySummary(status)),
    ...entry('Jobs', `${running_jobs} running of ${slots}; ${jobs.completed} done, ${jobs.failed} failed, ${jobs.cancelled} cancelled`),
    ...entry('Machine', `heat ${host.thermal}, memory ${host.memory_pressure}, power ${host.power}`),
    ...settingsLines(status),
    ...modelLines(status),
    ...(view === null ? entry('View', status.coordinator_problem ?? 'none') : viewLines(view)),
  ];
}

export function earnedText({ earned, requests, tokens, duty }: EarningsView['today']): string {
  const busy = duty === null ? '' : `, busy ${percent(duty)} of the time`;
  return `${dollars(earned)} for ${requests} ${requests === 1 ? 'request' : 'requests'}, ${tokens} tokens${busy}`;
}

function connectionText({ connection, coordinator }: DaemonStatus, now: number): string {
  const { state, since, problem, retry_at } = connection;
  if (state === 'connected') return `connected to ${coordinator} for ${spanOf(now - since)}`;
  const again = retry_at === null ? '' : `; next try in ${spanOf(retry_at - now)}`;
  return `NOT connected to ${coordinator} for ${spanOf(now - since)}${problem === null ? '' : `: ${problem}`}${again}`;
}

function trustText({ trust, simulated_enclave, connection }: DaemonStatus): string {
  const simulated = simulated_enclave ? ' (simulated enclave)' : '';
  if (connection.state !== 'connected') return `unknown until connected${simulated}`;
  if (trust === null) return `unknown${simulated}`;
  const jobs = trust.routable
    ? 'ready for requests'
    : `gets NO requests: ${trust.status.replaceAll('_', ' ')}. ${trust.status_remedy ?? ''}`;
  return `${trust.trust_level}${simulated}, ${jobs}`;
}

/** Lines about problems only. */
function settingsLines({ settings, hardening }: DaemonStatus): string[] {
  const { problem, needs_restart, path } = settings;
  const open = [
    ...(hardening.core_dumps === 'on' ? ['a crash may write a core dump'] : []),
    ...(hardening.engine_network === 'none'
      ? [`the engine may use the network: ${hardening.engine_network_problem ?? 'not known why'}`]
      : []),
  ];
  return [
    ...(problem === null ? [] : entry('Settings', `NOT applied: ${problem}. The previous settings stay in effect.`)),
    ...(problem !== null || needs_restart.length === 0
      ? []
      : entry('Settings', `${needs_restart.join(', ')} of ${path}: takes effect after: inference-provider restart`)),
    ...(open.length === 0 ? [] : entry('Hardening', open.join('; '))),
  ];
}

function modelLines({ models, engine, coordinator_view }: DaemonStatus): string[] {
  if (models.length === 0) return entry('Models', `none served; the engine is ${engine}`);
  return models.flatMap(({ id, context_length }) => {
    const seen = coordinator_view?.models.find((model) => model.id === id);
    const parts = [`${id}, context ${context_length}`];
    if (seen !== undefined) {
      parts.push(
        seen.routable ? 'ready for requests' : `no requests now (${(seen.gate ?? seen.state).replaceAll('_', ' ')})`,
        `${seen.decode_tps} tokens/s (${seen.measured_jobs === 0 ? 'estimate' : `measured in ${seen.measured_jobs} jobs`})`,
        `${seen.placements} requests, ${percent(seen.share)} of the model's`,
        `network: ${seen.demand.requests_last_5_minutes} requests in 5 min, ${seen.demand.waiting_requests} waiting`,
      );
    }
    return entry('Model', parts.join('; '));
  });
}

function viewLines({ earnings, share, placements, decisions, next_steps }: ProviderStatusAnswer): string[] {
  const whose = earnings?.of === 'account' ? 'all machines of the account' : 'this machine';
  return [
    ...entry('Share', `${placements} requests on this connection; ${percent(share)} of all placed requests`),
    ...(earnings === null
      ? []
      : entry('Earned', `${dollars(earnings.today_micro_usd)} today, ${dollars(earnings.total_micro_usd)} in all (${whose})`)),
    ...(decisions.length === 0 ? [] : ['', 'Last decisions of the coordinator (UTC)']),
    ...decisions.slice(0, MAX_DECISIONS).flatMap(({ last_at, count, text, model }) => {
      const times = count === 1 ? '' : ` (${count} times)`;
      return wrapped(`  ${clockTime(last_at)}  `, `${text}${times} ${model}`);
    }),
    '',
    'Next steps',
    ...next_steps.flatMap(({ text, model }, index) => wrapped(`  ${index + 1}. `, model === undefined ? text : `${text} (${model})`)),
  ];
}

function entry(name: string, text: string): string[] {
  return wrapped(name.padEnd(HEAD), text);
}

function clockTime(iso: string): string {
  return clean(iso).slice(11, 19);
}

export function accountText({ state, account_name, reason, remedy }: LinkStatus): string {
  switch (state) {
    case 'linked':
      return account_name === null || account_name === '' ? 'linked' : account_name;
    case 'waiting':
      return 'signed in; the link is confirmed at the next connection';
    case 'none':
      return `NONE. ${remedy ?? ''}`;
    default:
      return `NOT LINKED (${(reason ?? state).replaceAll('_', ' ')}). ${remedy ?? ''}`;
  }
}

/** One line for the state, and one per reason. */
export function availabilityLines({ state, reasons }: AvailabilityStatus): string[] {
  if (state === 'serving') return ['Serving.'];
  const head = state === 'leaving' ? 'Finishing running requests.' : 'Not accepting requests.';
  return [head, ...reasons.map(({ text }) => text)];
}

/** Availability in one line of `status`. */
function availabilitySummary({ availability, connection }: DaemonStatus): string {
  if (availability === null) return 'not yet: the provider is starting';
  if (availability.state === 'serving' && connection.state !== 'connected') return 'no: not connected to the coordinator';
  const awake = availability.keeps_awake ? ', and system sleep is prevented' : '';
  return availability.state === 'serving' ? `yes${awake}` : availabilityLines(availability).join(' ');
}
