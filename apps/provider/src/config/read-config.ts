/** `readConfig` reads and validates `config.toml`. Errors name the file, where possible the line and key, and the nearest key to a misspelt one. */
import { readFileSync, statSync } from 'node:fs';
import { lazyValidator } from '@inference/protocol';
import { parse, TomlError } from 'smol-toml';
import { Default } from 'typebox/value';
import { type Config, ConfigSchema, DEFAULTS } from './config.js';
import { configPath } from './data-dir.js';
import { didYouMean } from './did-you-mean.js';
import { lineAndColumn, locate } from './locate.js';

/** The message is without a full stop, such as `~/x/config.toml:3:1: …`. */
export class ConfigError extends Error {
  constructor(
    readonly path: string,
    /** From 1, as `column`. Null if the error concerns the whole file. */
    readonly line: number | null,
    readonly column: number | null,
    readonly problem: string,
  ) {
    super(`${path}${line === null ? '' : `:${line}:${column}`}: ${problem}`);
    this.name = 'ConfigError';
  }
}

const MAX_BYTES = 256 * 1024;
const configValidator = lazyValidator(ConfigSchema);

/** An absent file gives the defaults. Throws {@link ConfigError}. */
export function readConfig(path: string): Config {
  const text = configText(path);
  return text === null ? DEFAULTS : parseConfig(text, path);
}

/** Null if there is no file. Throws {@link ConfigError}. */
export function configText(path: string): string | null {
  try {
    if (statSync(path).size > MAX_BYTES) throw new ConfigError(path, null, null, `the file is larger than ${MAX_BYTES / 1024} KiB`);
    return new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(path));
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    const { code } = error as NodeJS.ErrnoException;
    // ENOTDIR is reported by the code that writes into the folder.
    if (code === 'ENOENT' || code === 'ENOTDIR') return null;
    throw new ConfigError(
      path,
      null,
      null,
      code === 'ERR_ENCODING_INVALID_ENCODED_DATA' ? 'the file is not UTF-8 text' : `the file cannot be read (${code})`,
    );
  }
}

/** As {@link readConfig}, from the text of a file. `path` is for the errors. */
export function parseConfig(text: string, path: string): Config {
  let found: unknown;
  try {
    found = parse(text);
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    const [what] = error.message.replace('Invalid TOML document: ', '').split('\n');
    throw new ConfigError(path, error.line, error.column, `this is not TOML: ${what}`);
  }
  const value = Default(ConfigSchema, structuredClone(found));
  if (!configValidator().Check(value)) throw problemOf(text, path, value);
  const { time_zone: zone } = value.availability;
  if (zone !== undefined && !isTimeZone(zone)) {
    throw errorAt(text, path, '/availability/time_zone', `availability.time_zone: there is no time zone ${JSON.stringify(zone)}`);
  }
  return value;
}

export function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

/** Unknown keys come first, because a misspelt key often causes the other problems. */
function problemOf(text: string, path: string, value: unknown): ConfigError {
  const errors = [...configValidator().Errors(value)];
  for (const error of errors) {
    if (error.keyword !== 'additionalProperties') continue;
    const [key] = error.params.additionalProperties;
    if (key === undefined) continue;
    const known = Object.keys(schemaAt(error.instancePath)?.properties ?? {});
    const where = `${error.instancePath}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`;
    return errorAt(text, path, where, `there is no setting ${toDottedPath(where)}${didYouMean(key, known)}`);
  }
  // The deepest path is the most specific.
  const worst = errors.reduce((best, error) => (error.instancePath.length > best.instancePath.length ? error : best));
  if (worst.keyword === 'required') {
    const [key] = worst.params.requiredProperties;
    return errorAt(text, path, worst.instancePath, `${toDottedPath(worst.instancePath)} needs ${key}`);
  }
  const expected = schemaAt(worst.instancePath)?.expected ?? worst.message;
  return errorAt(text, path, worst.instancePath, `${toDottedPath(worst.instancePath)} must be ${expected}`);
}

/** At the setting with the JSON pointer `where`, or the nearest table around it. */
function errorAt(text: string, path: string, where: string, problem: string): ConfigError {
  const places = locate(text);
  for (let name = where; name !== ''; name = name.slice(0, name.lastIndexOf('/'))) {
    const place = places.get(name);
    if (place === undefined) continue;
    const { line, column } = lineAndColumn(text, place.errorAt);
    return new ConfigError(path, line, column, problem);
  }
  return new ConfigError(path, 1, 1, problem);
}

function toDottedPath(where: string): string {
  return where
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .join('.');
}

interface SchemaNode {
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly items?: SchemaNode;
  readonly expected?: string;
}

function schemaAt(where: string): SchemaNode | undefined {
  let node: SchemaNode | undefined = ConfigSchema as unknown as SchemaNode;
  for (const part of where.split('/').slice(1)) node = node?.items ?? node?.properties?.[part];
  return node;
}

/** Undefined if unset, or if the settings are invalid, which `status` and `doctor` report. */
export function settingsTimeZone(dataDir: string): string | undefined {
  try {
    return readConfig(configPath(dataDir)).availability.time_zone;
  } catch (error) {
    if (error instanceof ConfigError) return undefined;
    throw error;
  }
}
