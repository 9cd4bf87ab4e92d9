/** Types of a `doctor` check and its result, and `runChecks`, which gives every check a time limit. */
import { withTimeLimit } from '@inference/protocol';

export type CheckState =
  | 'ok'
  /** Could be better; nothing is broken. */
  | 'note'
  /** Something needs the owner. */
  | 'problem'
  /** Not checked, with a reason. */
  | 'skipped';

export interface Finding {
  readonly state: CheckState;
  readonly text: string;
  /** Advice for the owner; present for notes and problems. */
  readonly remedy: string | null;
}

export interface Check {
  readonly name: string;
  readonly run: () => Promise<readonly Finding[]>;
}

export interface CheckResult extends Finding {
  readonly name: string;
}

export const ok = (text: string): Finding => ({ state: 'ok', text, remedy: null });
export const note = (text: string, remedy: string): Finding => ({ state: 'note', text, remedy });
export const problem = (text: string, remedy: string): Finding => ({ state: 'problem', text, remedy });
export const skipped = (text: string): Finding => ({ state: 'skipped', text, remedy: null });

/** Runs all checks concurrently. A check that throws or exceeds `limitMs` becomes a problem. */
export async function runChecks(checks: readonly Check[], limitMs: number): Promise<CheckResult[]> {
  const results = await Promise.all(
    checks.map(async ({ name, run }) => (await limited(run(), limitMs)).map((finding) => ({ name, ...finding }))),
  );
  return results.flat();
}

async function limited(findings: Promise<readonly Finding[]>, limitMs: number): Promise<readonly Finding[]> {
  const failed = (error: unknown): readonly Finding[] => [
    problem(
      `could not be checked: ${error instanceof Error ? error.message : 'unknown'}`,
      'Try again, and check the log: inference-provider logs',
    ),
  ];
  const result = await withTimeLimit(findings.catch(failed), limitMs);
  if (result !== 'late') return result;
  const text = `no answer within ${Math.round(limitMs / 1000)} s`;
  return [problem(text, 'Try again. If the problem remains, restart the provider or this Mac.')];
}
