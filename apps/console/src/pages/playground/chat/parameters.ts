/** `parseParameters`: converts the fields of the settings panel to request parameters. An empty field omits the parameter. */

export interface ParameterForm {
  readonly system: string;
  readonly temperature: string;
  readonly topP: string;
  readonly maxTokens: string;
  readonly seed: string;
  /** One stop sequence per line. */
  readonly stop: string;
}

export interface Parameters {
  readonly temperature?: number;
  readonly top_p?: number;
  readonly max_tokens?: number;
  readonly seed?: number;
  readonly stop?: readonly string[];
}

type ParametersResult =
  | { readonly kind: 'parameters'; readonly parameters: Parameters }
  | { readonly kind: 'refused'; readonly field: keyof ParameterForm; readonly problem: string };

export const EMPTY_PARAMETERS: ParameterForm = { system: '', temperature: '', topP: '', maxTokens: '', seed: '', stop: '' };

const MAX_TOKENS = 1_000_000;
const MAX_STOPS = 4;

export function parseParameters(form: ParameterForm): ParametersResult {
  const parameters: { -readonly [Name in keyof Parameters]: Parameters[Name] } = {};
  const temperature = parseDecimal(form.temperature, 2);
  if (temperature === null) return refused('temperature', 'Temperature is a number from 0 to 2.');
  if (temperature !== undefined) parameters.temperature = temperature;
  const topP = parseDecimal(form.topP, 1);
  if (topP === null) return refused('topP', 'Top P is a number from 0 to 1.');
  if (topP !== undefined) parameters.top_p = topP;
  const maxTokens = parseInteger(form.maxTokens, 1, MAX_TOKENS);
  if (maxTokens === null) return refused('maxTokens', 'Max tokens is a whole number of at least 1.');
  if (maxTokens !== undefined) parameters.max_tokens = maxTokens;
  const seed = parseInteger(form.seed, 0, Number.MAX_SAFE_INTEGER);
  if (seed === null) return refused('seed', 'A seed is a whole number.');
  if (seed !== undefined) parameters.seed = seed;
  const stop = form.stop.split('\n').filter((line) => line !== '');
  if (stop.length > MAX_STOPS) return refused('stop', `At most ${MAX_STOPS} stop sequences, one per line.`);
  if (stop.length > 0) parameters.stop = stop;
  return { kind: 'parameters', parameters };
}

/** Undefined: empty input. Null: invalid input. */
export function parseInteger(text: string, min: number, max: number): number | null | undefined {
  const trimmed = text.trim();
  if (trimmed === '') return undefined;
  const value = /^\d{1,16}$/.test(trimmed) ? Number(trimmed) : Number.NaN;
  return Number.isSafeInteger(value) && value >= min && value <= max ? value : null;
}

function parseDecimal(text: string, max: number): number | null | undefined {
  const trimmed = text.trim();
  if (trimmed === '') return undefined;
  const value = /^\d{0,2}(?:\.\d{1,6})?$/.test(trimmed) ? Number(trimmed) : Number.NaN;
  return value >= 0 && value <= max ? value : null;
}

function refused(field: keyof ParameterForm, problem: string): ParametersResult {
  return { kind: 'refused', field, problem };
}
