/**
 * Member tables decide about every member of a request body: read by the parser, refused, or ignored.
 *
 * Ignored members are reported to the client in the header `X-Inference-Ignored`, at most {@link MAX_IGNORED} names.
 */
import type { TSchema } from 'typebox';
import { RequestError } from '../errors/errors.js';
import { isJsonObject } from '../json/json-value.js';
import { nearestName } from './nearest-name.js';

/** Rule of a refused member. */
export interface Refusal {
  /** Values that are accepted because they have no effect, in addition to null. Default: false, and empty strings, arrays and objects. */
  readonly allowedValues?: readonly unknown[];
  /** Aliases in the same object. The member is accepted if an alias has the identical value. */
  readonly sameAs?: readonly string[];
  /** Sentence for the error message, which names an alternative. */
  readonly advice?: string;
}

export interface MemberTable {
  /** Members that the parser reads. The parser may still refuse their values. */
  readonly read: ReadonlySet<string>;
  /** Members that are accepted but have no effect. */
  readonly ignored: ReadonlySet<string>;
  /** Key: member. */
  readonly refused: ReadonlyMap<string, Refusal>;
  /** Tables of nested objects and arrays of objects. Key: member. */
  readonly within: ReadonlyMap<string, MemberTable>;
  /** Whether mode `refuse` also refuses unknown names in this object. Otherwise only misspelt names are refused. */
  readonly refusesUnknown: boolean;
}

interface MemberLists {
  /** Schema whose properties the parser reads. */
  readonly schema: TSchema;
  /** Names of further members that the parser reads, separated by spaces. */
  readonly alsoRead?: string;
  /** Names, separated by spaces. Takes precedence over the schema. */
  readonly ignored?: string;
  readonly refused?: Readonly<Record<string, Refusal>>;
  readonly within?: Readonly<Record<string, MemberTable>>;
  readonly refusesUnknown?: boolean;
}

export function memberTable({
  schema,
  alsoRead = '',
  ignored = '',
  refused = {},
  within = {},
  refusesUnknown = false,
}: MemberLists): MemberTable {
  const without = new Set(names(ignored));
  return {
    read: new Set([...Object.keys(propertiesOf(schema)), ...names(alsoRead)].filter((name) => !without.has(name))),
    ignored: without,
    refused: new Map(Object.entries(refused)),
    within: new Map(Object.entries(within)),
    refusesUnknown,
  };
}

/** Mode for unknown members. */
export type UnknownMembers =
  /** For providers, because a newer coordinator may know more names. */
  | 'ignore'
  /** For requests with `anthropic-beta`: refuses only names that are similar to a known name. */
  | 'refuse_misspelt'
  /** Refuses misspelt names everywhere, and other unknown names where `refusesUnknown` is set. */
  | 'refuse';

/** Returns the error message for an unknown member, in the wording of the format. */
export type UnknownWording = (path: string) => string;

/** Checks a body against a table and returns the paths of ignored members, such as `output_config.effort`. Throws RequestError. */
export function ignoredMembers(json: unknown, table: MemberTable, unknown: UnknownMembers, wording: UnknownWording): readonly string[] {
  if (!isJsonObject(json)) return [];
  const ignored = new Set<string>();
  examine(json, table, { path: '', shown: '', unknown, wording, ignored });
  return [...ignored];
}

interface ObjectContext {
  /** Path of the object, with array indices. */
  readonly path: string;
  /** Path without indices, so that a member that is ignored in many array elements is reported once. */
  readonly shown: string;
  readonly unknown: UnknownMembers;
  readonly wording: UnknownWording;
  readonly ignored: Set<string>;
}

/** Maximum reported members. Also limits the spelling comparisons per request. */
const MAX_IGNORED = 100;

/** Names that errors and headers may repeat. A name of another form may be client content. */
const NAME = /^[A-Za-z][A-Za-z0-9_.-]{0,39}$/;

function examine(object: Readonly<Record<string, unknown>>, table: MemberTable, context: ObjectContext): void {
  for (const [name, value] of Object.entries(object)) {
    if (value === null || value === undefined) continue;
    if (table.read.has(name)) {
      const inner = table.within.get(name);
      if (inner !== undefined) examineWithin(value, inner, name, context);
      continue;
    }
    const refusal = table.refused.get(name);
    if (refusal !== undefined) {
      const repeatsAlias = refusal.sameAs?.some((other) => other !== name && object[other] === value) ?? false;
      if (!repeatsAlias) refuseUnlessAllowed(context.path + name, value, refusal);
    } else if (table.ignored.has(name)) {
      if (!isEmpty(value) && context.ignored.size < MAX_IGNORED) context.ignored.add(context.shown + name);
    } else handleUnknown(name, table, context);
  }
}

function examineWithin(value: unknown, table: MemberTable, name: string, context: ObjectContext): void {
  if (Array.isArray(value)) {
    for (const [index, element] of value.entries()) {
      if (isJsonObject(element))
        examine(element, table, { ...context, path: `${context.path}${name}[${index}].`, shown: `${context.shown}${name}[].` });
    }
  } else if (isJsonObject(value)) examine(value, table, { ...context, path: `${context.path}${name}.`, shown: `${context.shown}${name}.` });
}

function refuseUnlessAllowed(path: string, value: unknown, { allowedValues, advice }: Refusal): void {
  if (allowedValues === undefined ? isEmpty(value) : allowedValues.includes(value)) return;
  throw new RequestError('unsupported_parameter', path, `${path} is not supported.${advice === undefined ? '' : ` ${advice}`}`);
}

function handleUnknown(name: string, table: MemberTable, { path, shown, unknown, wording, ignored }: ObjectContext): void {
  const isRefused = table.refusesUnknown && unknown === 'refuse';
  if (!isRefused && (ignored.size >= MAX_IGNORED || ignored.has(shown + name))) return;
  const isName = NAME.test(name);
  if (unknown !== 'ignore') {
    const meant = isName ? nearestName(name, [...table.read, ...table.ignored]) : null;
    if (meant !== null) throw new RequestError('unknown_parameter', path + name, `${wording(path + name)} (did you mean \`${meant}\`?)`);
    if (isRefused) {
      if (isName) throw new RequestError('unknown_parameter', path + name, `${wording(path + name)}.`);
      throw new RequestError('unknown_parameter', null, 'The request has a member whose name is not known.');
    }
  }
  ignored.add(isName ? shown + name : `${shown}(unknown)`);
}

/** Whether the value means the same as an absent member. */
function isEmpty(value: unknown): boolean {
  if (value === false || value === '') return true;
  if (Array.isArray(value)) return value.length === 0;
  return isJsonObject(value) && Object.keys(value).length === 0;
}

function propertiesOf(schema: TSchema): object {
  return 'properties' in schema && typeof schema.properties === 'object' && schema.properties !== null ? schema.properties : {};
}

function names(list: string): readonly string[] {
  return list.split(/\s+/).filter((name) => name !== '');
}
