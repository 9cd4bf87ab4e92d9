/** Checks of the coordinator's view: clock, session, trust, models, traffic, and the account link. */
import { actionableParts } from '@inference/protocol';
import type { DaemonStatus } from '../control/daemon-status.js';
import type { LinkStatus } from '../control/link-status.js';
import { ownerStep } from '../host/availability/owner-step.js';
import { type Finding, note, ok, problem, skipped } from './check.js';

/** The coordinator accepts statements with up to two minutes of clock difference. */
const LARGE_SKEW_MS = 60_000;
const NOTABLE_SKEW_MS = 10_000;

export function checkClock(skewMs: number | null): Finding[] {
  if (skewMs === null) return [skipped("the coordinator's time is unknown")];
  const text = `the clock is ${(Math.abs(skewMs) / 1000).toFixed(0)} s ${skewMs < 0 ? 'behind' : 'ahead of'} the coordinator's`;
  const remedy = 'Set the clock automatically: System Settings, General, Date & Time.';
  if (Math.abs(skewMs) >= LARGE_SKEW_MS) return [problem(text, remedy)];
  return [Math.abs(skewMs) >= NOTABLE_SKEW_MS ? note(text, remedy) : ok('the clock is right')];
}

/**
 * Session, trust, models, and the coordinator's advice. Each cause appears once: consequences and repeated remedies are left out.
 *
 * @param isReachable If false, the network check already names the cause.
 */
export function checkCoordinatorView(status: DaemonStatus, isReachable = true): Finding[] {
  const { connection, trust, coordinator_view: view, coordinator_problem, models, state } = status;
  if (state === 'starting') return [note('the provider is still starting', 'Wait until the model is loaded.')];
  if (connection.state !== 'connected') {
    const why = connection.problem ?? 'no connection was made yet';
    if (!isReachable) return [skipped(`not connected to the coordinator: ${why}`)];
    return [problem(`not connected to the coordinator: ${why}`, 'See the network and clock checks. The provider retries automatically.')];
  }
  const findings: Finding[] = [];
  if (trust !== null && !trust.routable) {
    // An absence is the owner's own choice or reported by the machine check.
    const why = trust.status === 'away' ? status.availability?.reasons[0] : undefined;
    if (why === undefined)
      findings.push(
        problem(
          `this machine gets no requests: ${trust.status.replaceAll('_', ' ')}`,
          trust.status_remedy ?? 'See the lines that begin with "trust".',
        ),
      );
    else findings.push(note(`not accepting requests for now: ${why.text}`, ownerStep(why.code) ?? 'None needed: this ends by itself.'));
  }
  for (const { name, state: part, reason, remedy } of actionableParts(trust?.parts ?? [])) {
    if (remedy !== undefined && isListed(findings, remedy)) continue;
    const finding = trust?.trust_level === 'none' ? problem : note;
    const what = `${name.replaceAll('_', ' ')} is ${part}`;
    // Without these parts, some clients exclude the machine.
    const forWhat = trust?.trust_level === 'self_signed' ? 'for trust level hardware, ' : 'trust: ';
    findings.push(finding(`${forWhat}${what}${reason === undefined ? '' : ` (${reason})`}`, remedy ?? 'See the log.'));
  }
  if (models.length === 0) findings.push(problem('no model is served', 'Check the log: the engine is down or restarting.'));
  if (view === null) {
    findings.push(note(`the coordinator's view: ${coordinator_problem ?? 'none'}`, 'Try again in a moment.'));
    return findings;
  }
  for (const { id, routable, gate, state: loaded } of view.models) {
    // A status of the whole machine is listed above.
    if (!routable && gate !== trust?.status)
      findings.push(note(`no requests for ${id} at the moment: ${gate ?? loaded}`, 'See the next steps.'));
  }
  const reported = new Set([...(trust?.parts ?? []).map(({ reason }) => reason), trust?.status, status.availability?.reasons[0]?.code]);
  for (const { code, text, model } of view.next_steps) {
    // The account has a check of its own.
    if (code === 'nothing' || code === 'not_linked' || reported.has(code) || isListed(findings, text)) continue;
    findings.push(note(`advice: ${code.replaceAll('_', ' ')}${model === undefined ? '' : ` (${model})`}`, text));
  }
  return findings.length > 0 ? findings : [ok('connected, trusted, and getting its share of requests')];
}

function isListed(findings: readonly Finding[], text: string): boolean {
  return findings.some(({ remedy }) => remedy?.includes(text) === true);
}

export function checkTraffic({ coordinator_view: view }: DaemonStatus): Finding[] {
  if (view === null) return [skipped('no answer from the coordinator')];
  const { placements, share, decisions } = view;
  const part =
    share === null
      ? 'the network had no requests for these models since this machine connected'
      : `${placements} requests, ${(share * 100).toFixed(share < 0.1 ? 1 : 0)}% of all placed requests`;
  const last = [...decisions].sort((a, b) => (a.last_at < b.last_at ? 1 : -1)).slice(0, 3);
  return [ok(part), ...last.map(({ model, text, count }) => ok(`${model}: ${text}${count > 1 ? ` (${count} times)` : ''}`))];
}

/** @param isReachable Whether this machine's coordinator answers. */
export function checkAccount({ state, account_name, reason, remedy }: LinkStatus, isReachable = true): Finding[] {
  // The unreachable address is the problem, and this may be its cause.
  if (!isReachable && state === 'other_coordinator') return [note('this machine was linked at another coordinator', remedy ?? '')];
  switch (state) {
    case 'linked':
      return [ok(`earnings of this machine go to ${account_name || 'its linked account'}`)];
    case 'waiting':
      return [ok('this machine is signed in; will be confirmed at the next connection')];
    case 'none':
      return [note('this machine is not linked to an account yet', remedy ?? 'Run: inference-provider login')];
    default:
      return [
        problem(
          `this machine is not linked to an account: ${(reason ?? state).replaceAll('_', ' ')}`,
          remedy ?? 'Run: inference-provider login',
        ),
      ];
  }
}
