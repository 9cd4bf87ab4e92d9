/** The error for a model that is not listed: it repeats the name, and suggests listed ones that the client may have meant. */
import { type ApiError, apiError, nearestNames } from '@inference/formats';

const MAX_SUGGESTIONS = 3;
/** Characters of a name that are repeated. */
const MAX_SHOWN = 120;
/** Shorter texts are parts of too many names. */
const MIN_PART = 4;

export function unknownModel(model: string, listed: Iterable<string>): ApiError {
  const near = nearModels(model, [...listed]);
  const hint = near.length === 0 ? '' : ` Did you mean ${near.map(quoted).join(' or ')}?`;
  const message = `The model ${quoted(model)} is not served here.${hint} GET /v1/models lists the models that are.`;
  return apiError('model_not_found', { param: 'model', message });
}

/** Names with few other letters, with or without what is before the last slash, and names that the text is a part of. */
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

/** Without characters that names of models do not have, such as those of markup. */
function quoted(name: string): string {
  const shown = name.replace(/[^\p{L}\p{N} ._:/@+()[\]-]/gu, '?');
  return `"${shown.length > MAX_SHOWN ? `${shown.slice(0, MAX_SHOWN)}...` : shown}"`;
}
