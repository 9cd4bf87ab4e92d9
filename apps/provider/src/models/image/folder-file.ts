/** Reads small files of a model's folder, with a size limit, and checks JSON against a schema. */
import { readFileSync, statSync } from 'node:fs';
import type { Static, TSchema } from 'typebox';
import { Check } from 'typebox/value';
import { ModelFileError } from '../gguf-header.js';

/** Vocabularies are the largest files. */
const MAX_BYTES = 32 << 20;

export function hasFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}

/** Throws {@link ModelFileError} for a file that is missing, too large, unreadable, or does not match the schema. */
export function readJson<Schema extends TSchema>(path: string, schema: Schema): Static<Schema> {
  let value: unknown;
  try {
    value = JSON.parse(readText(path));
  } catch (error) {
    if (error instanceof ModelFileError) throw error;
    throw new ModelFileError(`the file ${path} is not valid JSON`);
  }
  if (!Check(schema, value)) throw new ModelFileError(`the file ${path} does not have the expected content`);
  return value as Static<Schema>;
}

/** Throws {@link ModelFileError}. */
export function readText(path: string): string {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat?.isFile() !== true) throw new ModelFileError(`the model needs the file ${path}, which is missing`);
  if (stat.size > MAX_BYTES) throw new ModelFileError(`the file ${path} is too large`);
  try {
    return readFileSync(path, 'utf8');
  } catch {
    throw new ModelFileError(`the file ${path} cannot be read`);
  }
}
