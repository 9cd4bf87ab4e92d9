/** Types of a `doctor` check and its result, and `runChecks`, which gives every check a time limit. */

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
    checks.map(async ({ name, run }) => (await within(run(), limitMs)).map((finding) => ({ name, ...finding }))),
  );
  return results.flat();
}

async function within(finding: Promise<readonly Finding[]>, limitMs: number): Promise<readonly Finding[]> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<readonly Finding[]>((resolve) => {
    const text = `no answer within ${Math.round(limitMs / 1000)} s`;
    timer = setTimeout(() => resolve([problem(text, 'Try again. If the problem remains, restart the provider or this Mac.')]), limitMs);
  });
  const failed = (error: unknown): readonly Finding[] => [
    problem(
      `could not be checked: ${error instanceof Error ? error.message : 'unknown'}`,
      'Try again, and check the log: inference-provider logs',
    ),
  ];
  try {
    return await Promise.race([finding.catch(failed), late]);
  } finally {
    clearTimeout(timer);
  }
}
