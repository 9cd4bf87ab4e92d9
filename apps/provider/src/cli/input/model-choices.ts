/** `modelChoices`: the models that `serve` serves: those of its options, else those selected in the model store, else the demo model. */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, resolve } from 'node:path';
import type { ModelChoice } from '../../daemon/open-models.js';
import { DEFAULT_KEEP_ALIVE, type KeepAlive, parseKeepAlive, shorterKeepAlive } from '../../jobs/serving/keep-alive.js';
import { adjacentProjectorPath } from '../../models/projector.js';
import type { ModelStore, StoredModel } from '../../models/store/model-store.js';
import { StartupError } from '../../startup-error.js';

const require = createRequire(import.meta.url);
/** Path of a demo model, which an installation may lack. Throws {@link StartupError}. */
function demoModel(name: '#demo-model' | '#demo-image-model' | '#demo-vision-model'): string {
  try {
    return require.resolve(name);
  } catch {
    throw new StartupError(
      'the demo models are not installed: pull a model with `models pull` and select it with `models use`, or name one with --model',
    );
  }
}

const ALWAYS: KeepAlive = { kind: 'always' };

/** Paths by name. */
const SHIPPED: Readonly<Record<string, () => string>> = {
  'demo-text': () => demoModel('#demo-model'),
  'demo-image': () => dirname(demoModel('#demo-image-model')),
  'demo-vision': () => demoModel('#demo-vision-model'),
};

/**
 * Returns at least one model. Throws {@link StartupError} if a demo model is needed but not installed.
 *
 * @param given Each `FILE` or `FILE@KEEP`, where KEEP is `always`, `on_demand` or minutes. FILE may also be a folder, a stored model's id or
 * a name in `SHIPPED`. The first stays loaded by default. Undefined: the selected models of the store.
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
    const namedKeep = at < 0 ? null : parseKeepAlive(text.slice(at + 1));
    const name = namedKeep === null ? text : text.slice(0, at);
    const keep = namedKeep ?? shorterKeepAlive(index === 0 ? ALWAYS : DEFAULT_KEEP_ALIVE, maxKeep);
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
