/** Parses the arguments of a command: `--data-dir` and `--json`, which nearly all commands have, and the command's own options. */
import { parseArgs } from 'node:util';
import { dataDirOf } from '../../config/data-dir.js';
import { didYouMean } from '../../config/did-you-mean.js';

/** The message is one sentence for the owner. */
export class UsageError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'UsageError';
  }
}

type OptionTable = Readonly<Record<string, { readonly type: 'string' | 'boolean'; readonly short?: string }>>;

export interface OwnerOptions {
  readonly dataDir: string;
  readonly json: boolean;
  /** Key: name without dashes. */
  readonly values: Readonly<Record<string, string | boolean | undefined>>;
  readonly words: readonly string[];
}

/**
 * Parses the arguments of a command.
 *
 * @param more Options besides `--data-dir` and `--json`.
 * @param wordCount Permitted number of positional arguments. Default: none; without `max`, exactly `min`.
 * @throws {UsageError} An option or the number of positional arguments is wrong.
 */
export function ownerOptions(
  args: readonly string[],
  more: OptionTable = {},
  wordCount: { readonly min?: number; readonly max?: number } = {},
): OwnerOptions {
  const options = { ...more, 'data-dir': { type: 'string' as const }, json: { type: 'boolean' as const } };
  const { values, positionals } = parseOptions(
    () => parseArgs({ args: [...args], options, strict: true, allowPositionals: true }),
    options,
  );
  const { min = 0, max = min } = wordCount;
  const unexpected = positionals[max];
  if (unexpected !== undefined) throw new UsageError(`Unexpected argument: ${JSON.stringify(unexpected)}.`);
  if (positionals.length < min) throw new UsageError('An argument is missing.');
  return { dataDir: dataDirOf(values), json: values.json === true, values: values as OwnerOptions['values'], words: positionals };
}

/**
 * Returns what `parse` returns, a call of Node's `parseArgs`.
 *
 * @param options Known options, to suggest the nearest for a misspelt one.
 * @throws {UsageError} `parse` threw, or an option has an empty value.
 */
export function parseOptions<Read extends { readonly values: object }>(
  parse: () => Read,
  options: Readonly<Record<string, unknown>>,
): Read {
  const read = parseOrThrow(parse, options);
  // An empty value is probably a script's mistake, and must not select the default data directory.
  const empty = Object.entries(read.values).find(([, value]) => value === '');
  if (empty !== undefined) throw new UsageError(`--${empty[0]} needs a value.`);
  return read;
}

function parseOrThrow<Read>(parse: () => Read, options: Readonly<Record<string, unknown>>): Read {
  try {
    return parse();
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    const unknown = /^Unknown option '(-{1,2})([^']*)'/.exec(error.message);
    if (unknown === null) throw new UsageError(`The command line is not valid: ${error.message.split('\n')[0]}`);
    const [, dashes = '', name = ''] = unknown;
    const known = Object.keys(options).map((option) => `--${option}`);
    throw new UsageError(`There is no option ${dashes}${name}${didYouMean(`--${name}`, known)}.`);
  }
}
