/** Types, runner and text output of the command `check`. A `Check` returns `Finding`s. */
import { errorReason, isUnknownAuthority, StartupError, UNKNOWN_AUTHORITY_REMEDY } from '../../config/startup-error.js';

export type FindingState =
  | 'ok'
  /** The coordinator works, but the setting is unusual or risky. */
  | 'warning'
  | 'problem'
  /** Nothing was checked; the text says why. */
  | 'skipped';

export interface Finding {
  readonly state: FindingState;
  readonly text: string;
  /** Next step for the operator; null: nothing to do, or the text contains the step. */
  readonly remedy: string | null;
}

export interface Check {
  /** Name in the output, such as `database`. */
  readonly name: string;
  /** `signal` aborts at the time limit. */
  readonly run: (signal: AbortSignal) => Promise<readonly Finding[]>;
}

export interface CheckResult extends Finding {
  readonly name: string;
}

export const ok = (text: string): Finding => ({ state: 'ok', text, remedy: null });
export const warning = (text: string, remedy: string): Finding => ({ state: 'warning', text, remedy });
export const problem = (text: string, remedy: string): Finding => ({ state: 'problem', text, remedy });
export const skipped = (text: string): Finding => ({ state: 'skipped', text, remedy: null });

/** Runs all checks concurrently, and returns findings in the order of `checks`. A check that throws or exceeds `limitMs` is a problem. */
export async function runChecks(checks: readonly Check[], limitMs: number): Promise<CheckResult[]> {
  const results = await Promise.all(
    checks.map(async ({ name, run }) => (await runWithin(run, limitMs)).map((finding) => ({ name, ...finding }))),
  );
  return results.flat();
}

async function runWithin(run: Check['run'], limitMs: number): Promise<readonly Finding[]> {
  const limit = AbortSignal.timeout(limitMs);
  const late = new Promise<readonly Finding[]>((resolve) => {
    const text = `no answer within ${Math.round(limitMs / 1000)} s`;
    limit.addEventListener('abort', () =>
      resolve([problem(text, 'Look at the network and the firewall between this machine and the service.')]),
    );
  });
  // Only the message of a StartupError is printed: other messages could quote a secret.
  const failed = (error: unknown): readonly Finding[] => [
    problem(
      error instanceof StartupError ? error.message : `could not be checked: ${causeOf(error)}`,
      'Correct this, and run the check again.',
    ),
  ];
  return Promise.race([run(limit).catch(failed), late]);
}

/** Error code for output, such as ECONNREFUSED. Prefers the code of the cause, because `fetch` wraps connection errors. */
export function causeOf(error: unknown): string {
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
  if (cause instanceof AggregateError && cause.errors[0] !== undefined) return causeOf(cause.errors[0]);
  return cause instanceof Error && 'code' in cause ? errorReason(cause) : cause instanceof Error ? cause.name : 'unknown error';
}

/** Problem of an unreachable service. For an untrusted certificate authority, another remedy replaces `remedy`. */
export function unreachable(service: string, error: unknown, remedy: string): Finding {
  const cause = causeOf(error);
  return problem(`${service} cannot be reached: ${cause}`, isUnknownAuthority(cause) ? UNKNOWN_AUTHORITY_REMEDY : remedy);
}

const STATE_LABELS: Readonly<Record<FindingState, string>> = { ok: 'ok', warning: 'warning', problem: 'PROBLEM', skipped: 'skipped' };

export function linesOf(results: readonly CheckResult[]): string[] {
  const lines = results.flatMap(({ name, state, text, remedy }) => [
    `${STATE_LABELS[state].padEnd(8)} ${name.padEnd(15)} ${text}`,
    ...(remedy === null ? [] : [`${' '.repeat(25)}${remedy}`]),
  ]);
  const count = (state: FindingState): number => results.filter((result) => result.state === state).length;
  const [problems, warnings] = [count('problem'), count('warning')];
  const andWarnings = warnings === 0 ? '' : `, ${warnings} ${warnings === 1 ? 'warning' : 'warnings'}`;
  return [
    ...lines,
    '',
    problems === 0 ? `No problems${andWarnings}.` : `${problems} ${problems === 1 ? 'problem' : 'problems'} to fix${andWarnings}.`,
  ];
}
