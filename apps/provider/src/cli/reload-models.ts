/** `reloadModels` makes a running daemon serve the models that the owner has selected. Used after changes of the model store. */
import { ControlError, requestDaemon } from '../control/control-client.js';
import { isModelsChange, MODELS_PATH } from '../control/models-routes.js';

/** The daemon reads the headers of all model files, which may take seconds on a slow disk. */
const ANSWER_MS = 20_000;

export type ReloadOutcome =
  /** `problem`: why the model is not served, or null. */
  | { readonly kind: 'applied'; readonly problem: string | null }
  | { readonly kind: 'not_running' }
  /** The daemon continues unchanged. */
  | { readonly kind: 'not_applied'; readonly why: string };

/** @param path Model that the owner just changed. */
export async function reloadModels(dataDir: string, path: string): Promise<ReloadOutcome> {
  try {
    const { refused } = await requestDaemon(dataDir, { path: MODELS_PATH, body: {} }, isModelsChange, ANSWER_MS);
    return { kind: 'applied', problem: refused.find((one) => one.path === path)?.reason ?? null };
  } catch (error) {
    if (!(error instanceof ControlError)) throw error;
    return error.problem === 'not_running' ? { kind: 'not_running' } : { kind: 'not_applied', why: error.message };
  }
}
