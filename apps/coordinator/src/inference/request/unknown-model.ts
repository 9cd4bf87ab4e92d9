/** `unknownModel` returns the error for a model that this network does not serve. Suggests similar names from the model list. */
import { type ApiError, apiError, nearestNames } from '@inference/formats';

const MAX_SUGGESTIONS = 3;
/** Maximum characters of each name in the error message. */
const MAX_SHOWN = 120;
/** Minimum length of a requested name for suggestions that contain it. Shorter texts occur in too many names. */
const MIN_PART = 4;

export function unknownModel(model: string, listed: Iterable<string>): ApiError {
  const near = nearModels(model, [...listed]);
  const hint = near.length === 0 ? '' : ` Did you mean ${near.map(quoted).join(' or ')}?`;
  const message = `The model ${quoted(model)} is not served here.${hint} GET /v1/models lists the models that are.`;
  return apiError('model_not_found', { param: 'model', message });
}

/** Listed names similar to `model`, with or without the part before the last slash, then names that contain its last part. */
function nearModels(model: string, listed: readonly string[]): readonly string[] {
  const own = lastPart(model).toLowerCase();
  const ownPart = new Map(listed.map((name) => [lastPart(name), name]));
  const alike = nearestNames(own, ownPart.keys(), MAX_SUGGESTIONS).flatMap((part) => ownPart.get(part) ?? []);
  const containing = own.length < MIN_PART ? [] : listed.filter((name) => name.toLowerCase().includes(own));
  return [...new Set([...nearestNames(model, listed, MAX_SUGGESTIONS), ...alike, ...containing])].slice(0, MAX_SUGGESTIONS);
}

function lastPart(name: string): string {
  return name.slice(name.lastIndexOf('/') + 1);
}

/** Quotes a name for a message. Replaces characters that model names do not contain, such as markup. */
function quoted(name: string): string {
  const shown = name.replace(/[^\p{L}\p{N} ._:/@+()[\]-]/gu, '?');
  return `"${shown.length > MAX_SHOWN ? `${shown.slice(0, MAX_SHOWN)}...` : shown}"`;
}
