/** Reads command lines: the options that all commands share, those of one, and what is said about one that cannot be understood. */
import { parseArgs } from 'node:util';
import { dataDirOf } from '../../config/data-dir.js';
import { didYouMean } from '../../config/did-you-mean.js';

/** A command line that cannot be understood, in one sentence. */
export class UsageError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'UsageError';
  }
}

export type OptionTable = Readonly<Record<string, { readonly type: 'string' | 'boolean'; readonly short?: string }>>;

export interface OwnerOptions {
  readonly dataDir: string;
  readonly json: boolean;
  /** Values of the further options, by name. */
  readonly values: Readonly<Record<string, string | boolean | undefined>>;
  /** Words that are no options. */
  readonly words: readonly string[];
}

/** Throws {@link UsageError}. `more`: options beside `--data-dir` and `--json`; `words`: how many words beside options there may be. */
export function ownerOptions(args: readonly string[], more: OptionTable = {}, words: { min?: number; max?: number } = {}): OwnerOptions {
  const options = { ...more, 'data-dir': { type: 'string' as const }, json: { type: 'boolean' as const } };
  const { values, positionals } = parsed(() => parseArgs({ args: [...args], options, strict: true, allowPositionals: true }), options);
  const { min = 0, max = min } = words;
  const unexpected = positionals[max];
  if (unexpected !== undefined) throw new UsageError(`${JSON.stringify(unexpected)} was not expected.`);
  if (positionals.length < min) throw new UsageError('The command line is not complete.');
  return { dataDir: dataDirOf(values), json: values.json === true, values: values as OwnerOptions['values'], words: positionals };
}

/** Runs `parseArgs`, and words what it refuses. Throws {@link UsageError}. */
export function parsed<Read extends { readonly values: object }>(parse: () => Read, options: Readonly<Record<string, unknown>>): Read {
  const read = understood(parse, options);
  // What a script has left empty by mistake must not count as left out: the default may be another data directory.
  const empty = Object.entries(read.values).find(([, value]) => value === '');
  if (empty !== undefined) throw new UsageError(`--${empty[0]} needs a value.`);
  return read;
}

function understood<Read>(parse: () => Read, options: Readonly<Record<string, unknown>>): Read {
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
