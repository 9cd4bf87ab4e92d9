/** Options of the commands that ask a running provider, read the same way by all of them. */
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';

/** A command line that cannot be understood, in one sentence. */
export class UsageError extends Error {}

export interface OwnerOptions {
  readonly dataDir: string;
  readonly json: boolean;
  /** Values of the further options, by name. */
  readonly values: Readonly<Record<string, string | boolean | undefined>>;
}

/** Throws {@link UsageError}. `more`: options beside `--data-dir` and `--json`. */
export function ownerOptions(args: readonly string[], more: Readonly<Record<string, { type: 'string' | 'boolean' }>> = {}): OwnerOptions {
  let values: Record<string, string | boolean | undefined>;
  try {
    const options = { ...more, 'data-dir': { type: 'string' as const }, json: { type: 'boolean' as const } };
    ({ values } = parseArgs({ args: [...args], options, strict: true }) as { values: typeof values });
  } catch (error) {
    throw new UsageError(`The command line is not valid: ${error instanceof Error ? error.message : ''}`);
  }
  const dataDir = values['data-dir'];
  if (typeof dataDir !== 'string') throw new UsageError('--data-dir is missing: give the one that the provider is started with.');
  return { dataDir: resolve(dataDir), json: values.json === true, values };
}
