/** Which models `serve` serves: those that are named, those of the library that are in use, or the demo model. */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, resolve } from 'node:path';
import type { ModelChoice } from '../../daemon/open-models.js';
import type { Library, LibraryEntry } from '../../models/library/library.js';
import { DEFAULT_IDLE, type Keep, readKeep, shorterKeep } from '../../serving/keep.js';
import { StartupError } from '../../startup-error.js';

const require = createRequire(import.meta.url);
/** Looked for when it is asked for: an installed agent may have come without it. Throws {@link StartupError}. */
function demoModel(name: '#demo-model' | '#demo-image-model'): string {
  try {
    return require.resolve(name);
  } catch {
    throw new StartupError(
      'no model is in use, and the demo models are not installed: pull one with `models pull`, or name one with --model',
    );
  }
}

const ALWAYS: Keep = { kind: 'always' };

/** Names for what ships with the program, in place of a path. */
const SHIPPED: Readonly<Record<string, () => string>> = {
  'demo-text': () => demoModel('#demo-model'),
  'demo-image': () => dirname(demoModel('#demo-image-model')),
};

/**
 * Each is `FILE` or `FILE@KEEP`, where KEEP is `always`, `on_demand` or minutes; the first stays loaded unless it says otherwise.
 * In place of a file it may be a folder, the id of a model of the library, or `demo-text` and `demo-image`. With none: those of the library that are in use, or the demo model.
 * `longest`: what an owner wants of all models; what is said of a single one on the command line goes before it.
 */
export function modelChoices(given: readonly string[] | undefined, library: Library, longest: Keep = ALWAYS): ModelChoice[] {
  if (given === undefined) {
    const used = library.entries().filter(({ use }) => use !== null);
    const choices = used.map((entry) => ofLibrary(entry, library, shorterKeep(readKeep(entry.use ?? '') ?? DEFAULT_IDLE, longest)));
    return choices.length > 0 ? choices : [{ path: demoModel('#demo-model'), keep: longest }];
  }
  return given.map((text, index) => {
    const at = text.lastIndexOf('@');
    const said = at < 0 ? null : readKeep(text.slice(at + 1));
    const name = said === null ? text : text.slice(0, at);
    const keep = said ?? shorterKeep(index === 0 ? ALWAYS : DEFAULT_IDLE, longest);
    const shipped = Object.hasOwn(SHIPPED, name) ? SHIPPED[name] : undefined;
    if (shipped !== undefined) return { path: shipped(), keep };
    const path = resolve(name);
    const entry = existsSync(path) ? null : library.find(name);
    return entry === null ? { path, keep } : ofLibrary(entry, library, keep);
  });
}

function ofLibrary(entry: LibraryEntry, library: Library, keep: Keep): ModelChoice {
  return { path: library.path(entry), keep, id: entry.id, sha256: entry.sha256 };
}
