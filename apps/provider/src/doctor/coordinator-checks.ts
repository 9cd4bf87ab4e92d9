/** What can be seen of the way to the coordinator, and how the coordinator sees this provider. */
import type { DaemonStatus } from '../control/daemon-status.js';
import { type Finding, note, ok, problem, skipped } from './check.js';

const REACH_MS = 3_500;
/** The coordinator takes statements that are up to two minutes off. */
const LARGE_SKEW_MS = 60_000;
const NOTABLE_SKEW_MS = 10_000;

export interface Reached {
  readonly findings: readonly Finding[];
  /** This machine's clock less the coordinator's by its `Date` header, in milliseconds; null where there was none. */
  readonly skewMs: number | null;
}

/** `url` null: it is not known which coordinator it is. */
export async function reachCoordinator(url: string | null): Promise<Reached> {
  if (url === null) {
    return {
      findings: [skipped('it is not known which coordinator: the provider does not run; give it with --coordinator')],
      skewMs: null,
    };
  }
  try {
    const response = await fetch(`${url}/health`, { signal: AbortSignal.timeout(REACH_MS) });
    await response.body?.cancel();
    const date = Date.parse(response.headers.get('date') ?? '');
    const skewMs = Number.isNaN(date) ? null : Date.now() - date;
    if (response.ok) return { findings: [ok(`the coordinator ${url} answers`)], skewMs };
    const finding = problem(
      `the coordinator ${url} answers with status ${response.status}`,
      'Check its address, or wait until it is up again.',
    );
    return { findings: [finding], skewMs };
  } catch {
    const remedy = 'Check the network of this Mac, its firewall and proxy, and the address of the coordinator.';
    return { findings: [problem(`the coordinator ${url} cannot be reached`, remedy)], skewMs: null };
  }
}

export function judgeClock(skewMs: number | null): Finding[] {
  if (skewMs === null) return [skipped('the time of the coordinator is not known')];
  const text = `the clock is ${(Math.abs(skewMs) / 1000).toFixed(0)} s ${skewMs < 0 ? 'behind' : 'ahead of'} the coordinator's`;
  const remedy = 'Set the clock by the network: System Settings, General, Date & Time.';
  if (Math.abs(skewMs) >= LARGE_SKEW_MS) return [problem(text, remedy)];
  return [Math.abs(skewMs) >= NOTABLE_SKEW_MS ? note(text, remedy) : ok('the clock is right')];
}

/** Session, trust, models and what the coordinator advises. */
export function judgeView(status: DaemonStatus): Finding[] {
  const { connection, trust, coordinator_view: view, coordinator_problem, models, state } = status;
  if (state === 'starting') return [note('the provider is still starting', 'Wait until the model is loaded.')];
  if (connection.state !== 'connected') {
    const why = connection.problem ?? 'no connection was made yet';
    return [
      problem(`not connected to the coordinator: ${why}`, 'See the checks of network and clock; the provider tries again by itself.'),
    ];
  }
  const findings: Finding[] = [];
  if (trust !== null && !trust.routable) {
    // That it is away is what its owner asked for, or what the check of the machine tells.
    const why = trust.status === 'away' ? status.availability?.reasons[0] : undefined;
    if (why === undefined) findings.push(problem(`no jobs come: ${trust.status}`, trust.status_remedy ?? 'See the parts of trust.'));
    else findings.push(note(`no jobs come for now: ${why.code}`, why.text));
  }
  for (const { name, state: part, reason, remedy } of trust?.parts ?? []) {
    if (part === 'ok') continue;
    const finding = trust?.trust_level === 'none' ? problem : note;
    findings.push(finding(`trust: ${name} is ${part}${reason === undefined ? '' : ` (${reason})`}`, remedy ?? 'See the log.'));
  }
  if (models.length === 0) findings.push(problem('no model is served', 'Look into the log: the engine is down, or starts again.'));
  if (view === null) {
    findings.push(note(`the coordinator's view: ${coordinator_problem ?? 'none'}`, 'Try again in a moment.'));
    return findings;
  }
  for (const { id, routable, gate, state: loaded } of view.models) {
    if (!routable) findings.push(note(`no jobs for ${id} at this moment: ${gate ?? loaded}`, 'See the next steps.'));
  }
  for (const { code, text } of view.next_steps) if (code !== 'nothing') findings.push(note(`advice: ${code}`, text));
  return findings.length > 0 ? findings : [ok('connected, trusted, and served its part of the requests')];
}
