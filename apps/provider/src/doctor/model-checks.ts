/** Checks that the selected models of the store are unchanged since their pull. Reads only small files, which take seconds at most. */
import { stat } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import { type FileHashes, modelHash } from '../models/file-hash.js';
import type { ModelStore, StoredModel } from '../models/store/model-store.js';
import { type Finding, note, ok, problem, skipped } from './check.js';

/** Maximum size of a model that is hashed while the owner waits. */
const MAX_HASHED_BYTES = 512 << 20;

export async function checkModelFiles(store: ModelStore, hashes: FileHashes, signal: AbortSignal): Promise<Finding[]> {
  const used = store.entries().filter(({ use }) => use !== null);
  if (used.length === 0) return [skipped('no stored model is in use')];
  const findings = await Promise.all(used.map((entry) => checkEntry(entry, store.directory, hashes, signal)));
  const bad = findings.filter(({ state }) => state !== 'ok');
  return bad.length > 0
    ? bad
    : [ok(used.length === 1 ? 'the model is unchanged since the pull' : `all ${used.length} models are unchanged since the pull`)];
}

async function checkEntry(entry: StoredModel, folder: string, hashes: FileHashes, signal: AbortSignal): Promise<Finding> {
  const { id, sha256, bytes } = entry;
  const remedy = `Run: inference-provider models rm ${id}, then pull the model again`;
  const paths = entry.files.map((file) => (isAbsolute(file) ? file : join(folder, file)));
  let size = 0;
  for (const path of paths) {
    const found = await stat(path).catch(() => null);
    if (found === null) return problem(`a file of ${id} is missing: ${path}`, remedy);
    size += found.size;
  }
  if (size !== bytes) return problem(`the files of ${id} have ${size} bytes instead of ${bytes}`, remedy);
  const cached = await Promise.all(paths.map((path) => hashes.cachedHash(path)));
  const isCached = cached.every((hash) => hash !== null);
  if (!isCached && size > MAX_HASHED_BYTES)
    return note(`the files of ${id} were modified since their check`, 'The next start of the provider verifies the whole files.');
  const found = isCached ? modelHash(cached) : await hashes.hashModel(paths, signal);
  return found === sha256 ? ok('') : problem(`the model ${id} is damaged: its SHA-256 differs`, remedy);
}
