/** Functions that the `models` commands share: options, model store and errors. */
import { join } from 'node:path';
import { dataDirOf } from '../config/data-dir.js';
import { FileHashes } from '../models/file-hash.js';
import { ModelStore } from '../models/store/model-store.js';
import { startupErrorText } from '../startup-error.js';
import { parseOptions, UsageError } from './input/owner-options.js';
import { PromptAborted } from './input/prompt.js';

export interface OpenStore {
  readonly store: ModelStore;
  readonly hashes: FileHashes;
}

export function modelStoreOf(dataDir: string): OpenStore {
  return { store: new ModelStore(join(dataDir, 'models')), hashes: new FileHashes(join(dataDir, 'model-hashes.json')) };
}

export const COMMON_OPTIONS = { 'data-dir': { type: 'string' }, json: { type: 'boolean' } } as const;

/** Calls `parse`. Throws {@link UsageError} for invalid options or another number of words. */
export function readArguments<Read extends { readonly positionals: readonly string[]; readonly values: object }>(
  usage: string,
  words: number,
  parse: () => Read,
  options: Readonly<Record<string, unknown>> = COMMON_OPTIONS,
): Read {
  const read = parseOptions(parse, options);
  if (read.positionals.length !== words) throw new UsageError(`Usage: inference-provider ${usage}`);
  return read;
}

export function openStore(dataDir: string | undefined): OpenStore {
  return modelStoreOf(dataDirOf({ 'data-dir': dataDir }));
}

/** Runs a command. Errors become one sentence on stderr and exit code 1; UsageError and PromptAborted are rethrown. */
export async function withErrorText(run: () => Promise<number>): Promise<number> {
  try {
    return await run();
  } catch (error) {
    if (error instanceof UsageError || error instanceof PromptAborted) throw error;
    process.stderr.write(`${startupErrorText(error)}\n`);
    return 1;
  }
}
