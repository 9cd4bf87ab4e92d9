/** Command-line parsing: options shared by all commands, options of one command, and errors. */
import { parseArgs } from 'node:util';
import { dataDirOf } from '../../config/data-dir.js';
import { didYouMean } from '../../config/did-you-mean.js';

/** Invalid command line, as one sentence. */
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
  /** Values of the further options, by name. */
  readonly values: Readonly<Record<string, string | boolean | undefined>>;
  /** Positional arguments. */
  readonly words: readonly string[];
}

/**
 * Throws {@link UsageError}.
 *
 * @param more Options besides `--data-dir` and `--json`.
 * @param words Permitted number of positional arguments.
 */
export function ownerOptions(args: readonly string[], more: OptionTable = {}, words: { min?: number; max?: number } = {}): OwnerOptions {
  const options = { ...more, 'data-dir': { type: 'string' as const }, json: { type: 'boolean' as const } };
  const { values, positionals } = parseOptions(
    () => parseArgs({ args: [...args], options, strict: true, allowPositionals: true }),
    options,
  );
  const { min = 0, max = min } = words;
  const unexpected = positionals[max];
  if (unexpected !== undefined) throw new UsageError(`Unexpected argument: ${JSON.stringify(unexpected)}.`);
  if (positionals.length < min) throw new UsageError('An argument is missing.');
  return { dataDir: dataDirOf(values), json: values.json === true, values: values as OwnerOptions['values'], words: positionals };
}

/** Runs `parseArgs` and converts its errors. Throws {@link UsageError}. */
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
    throw new UsageError(
      `There is no option ${dashes}${name}${didYouMean(
        `--${name}`,
        Object.keys(options).map((each) => `--${each}`),
      )}.`,
    );
  }
}
