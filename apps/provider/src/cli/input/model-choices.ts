/** `modelChoices`: the models for `serve`: named by options, else selected in the model store, else the demo model. */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, resolve } from 'node:path';
import type { ModelChoice } from '../../daemon/open-models.js';
import { DEFAULT_KEEP_ALIVE, type KeepAlive, parseKeepAlive, shorterKeepAlive } from '../../jobs/serving/keep-alive.js';
import { adjacentProjectorPath } from '../../models/projector.js';
import type { ModelStore, StoredModel } from '../../models/store/model-store.js';
import { StartupError } from '../../startup-error.js';

const require = createRequire(import.meta.url);
/** Resolved lazily: an installation may lack the demo models. Throws {@link StartupError}. */
function demoModel(name: '#demo-model' | '#demo-image-model' | '#demo-vision-model'): string {
  try {
    return require.resolve(name);
  } catch {
    throw new StartupError(
      'no model is in use, and the demo models are not installed: pull one with `models pull`, or name one with --model',
    );
  }
}

const ALWAYS: KeepAlive = { kind: 'always' };

/** Names of models that ship with the program. */
const SHIPPED: Readonly<Record<string, () => string>> = {
  'demo-text': () => demoModel('#demo-model'),
  'demo-image': () => dirname(demoModel('#demo-image-model')),
  'demo-vision': () => demoModel('#demo-vision-model'),
};

/**
 * Models from `FILE` or `FILE@KEEP`, where KEEP is `always`, `on_demand` or minutes. The first stays loaded by default.
 *
 * FILE may also be a folder, a stored model's id, `demo-text`, `demo-image` or `demo-vision`. A projector `mmproj-FILE` beside FILE is
 * used.
 *
 * @param given Arguments. Without any, the stored models in use are served, or else the demo model.
 * @param maxKeep Maximum keep-alive time of the settings. A KEEP on the command line overrides it.
 */
export function modelChoices(given: readonly string[] | undefined, store: ModelStore, maxKeep: KeepAlive = ALWAYS): ModelChoice[] {
  if (given === undefined) {
    const used = store.entries().filter(({ use }) => use !== null);
    const choices = used.map((entry) =>
      storedChoice(entry, store, shorterKeepAlive(parseKeepAlive(entry.use ?? '') ?? DEFAULT_KEEP_ALIVE, maxKeep)),
    );
    return choices.length > 0 ? choices : [{ path: demoModel('#demo-model'), keep: maxKeep }];
  }
  return given.map((text, index) => {
    const at = text.lastIndexOf('@');
    const said = at < 0 ? null : parseKeepAlive(text.slice(at + 1));
    const name = said === null ? text : text.slice(0, at);
    const keep = said ?? shorterKeepAlive(index === 0 ? ALWAYS : DEFAULT_KEEP_ALIVE, maxKeep);
    const shipped = Object.hasOwn(SHIPPED, name) ? SHIPPED[name] : undefined;
    if (shipped !== undefined) return localChoice(shipped(), keep);
    const path = resolve(name);
    const entry = existsSync(path) ? null : store.find(name);
    return entry === null ? localChoice(path, keep) : storedChoice(entry, store, keep);
  });
}

function localChoice(path: string, keep: KeepAlive): ModelChoice {
  return { path, ...projectorMember(adjacentProjectorPath(path)), keep };
}

function storedChoice(entry: StoredModel, store: ModelStore, keep: KeepAlive): ModelChoice {
  return { path: store.path(entry), ...projectorMember(store.projectorPath(entry)), keep, id: entry.id, sha256: entry.sha256 };
}

function projectorMember(path: string | null): Pick<ModelChoice, 'projectorPath'> {
  return path === null ? {} : { projectorPath: path };
}
