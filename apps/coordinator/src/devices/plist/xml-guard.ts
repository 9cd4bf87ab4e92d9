/**
 * `guardXml` validates an XML property list before the library parses it. Only known elements in bounded number and depth are allowed.
 *
 * Rejects custom entities, duplicate keys, and document types other than Apple's.
 */
import { MAX_KEY_LENGTH, PLIST_LIMITS, PlistError } from './value.js';

const PROLOG = /^\uFEFF?(?:<\?xml version="1\.0"(?: encoding="(?:UTF|utf)-8")?\s*\?>)?\s*/;
/** Standard document type of property lists. Never fetched, and removed before parsing. */
const DOCTYPE =
  /<!DOCTYPE plist PUBLIC "-\/\/Apple(?: Computer)?\/\/DTD PLIST 1\.0\/\/EN" "https?:\/\/www\.apple\.com\/DTDs\/PropertyList-1\.0\.dtd"\s*>\s*/y;
const TAG = /<(\/?)([a-z]+)(?: version="1\.0")?\s*(\/?)>/y;
const TEXT = /[^<]*/y;
const REFERENCE = /&(?:amp|lt|gt|quot|apos|#(\d{1,7})|#x([0-9a-fA-F]{1,6}));/g;
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what XML 1.0 section 2.2 forbids
const FORBIDDEN_CHARACTERS = /[\u0000-\u0008\u000B\u000C\u000E-\u001F\uFFFE\uFFFF]/;

const CONTAINERS: ReadonlySet<string> = new Set(['plist', 'dict', 'array']);
/** Permitted text per element. */
const CONTENT: Readonly<Record<string, RegExp>> = {
  key: /^[^&]*$/,
  string: /^(?!.*\]\]>).*$/s,
  integer: /^\s*[+-]?\d{1,16}\s*$/,
  real: /^\s*[+-]?\d{1,32}(?:\.\d{1,32})?(?:[eE][+-]?\d{1,3})?\s*$/,
  data: /^[A-Za-z0-9+/=\s]*$/,
  date: /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/,
  true: /^$/,
  false: /^$/,
};

/** An element whose end tag has not been read. */
interface OpenElement {
  readonly name: string;
  readonly keys: Set<string>;
  children: number;
}

/** Returns the text without prolog, ready for the parser. Throws {@link PlistError}. */
export function guardXml(text: string): string {
  if (FORBIDDEN_CHARACTERS.test(text)) throw new PlistError('plist_malformed');
  const start = afterProlog(text);
  const open: OpenElement[] = [];
  let values = 0;
  let at = start;
  do {
    const tag = match(TAG, text, at);
    if (tag === null) throw new PlistError(text.startsWith('<!', at) ? 'plist_dtd_refused' : 'plist_malformed');
    const [whole, closing, name = '', empty] = tag;
    at += whole.length;
    if (whole.includes(' version=') && name !== 'plist') throw new PlistError('plist_malformed');
    if (closing === '/') {
      if (whole !== `</${name}>`) throw new PlistError('plist_malformed');
      close(open, name);
    } else {
      if (++values > PLIST_LIMITS.values) throw new PlistError('plist_too_many_values');
      const parent = open.at(-1);
      if (CONTAINERS.has(name)) {
        requireAllowed(parent, name, '');
        if (empty === '') open.push({ name, keys: new Set(), children: 0 });
        else if (name === 'plist') throw new PlistError('plist_malformed');
        if (open.length > PLIST_LIMITS.depth) throw new PlistError('plist_too_deep');
      } else {
        const content = empty === '' ? (match(TEXT, text, at)?.[0] ?? '') : '';
        at += content.length;
        if (empty === '') at = afterEnd(text, at, name);
        checkContent(name, content);
        requireAllowed(parent, name, content);
      }
    }
    at = afterBlank(text, at, open.length === 0);
  } while (open.length > 0);
  if (at !== text.length) throw new PlistError('plist_malformed');
  return text.slice(start);
}

function afterProlog(text: string): number {
  let at = PROLOG.exec(text)?.[0].length ?? 0;
  at += match(DOCTYPE, text, at)?.[0].length ?? 0;
  if (!text.startsWith('<plist', at)) throw new PlistError(text.startsWith('<!', at) ? 'plist_dtd_refused' : 'plist_malformed');
  return at;
}

/** Rejects elements in a wrong place. Dictionaries alternate keys and values; a plist has a single value. */
function requireAllowed(parent: OpenElement | undefined, name: string, content: string): void {
  if ((parent === undefined) !== (name === 'plist')) throw new PlistError('plist_malformed');
  if (parent === undefined) return;
  const isKey = name === 'key';
  if (isKey !== (parent.name === 'dict' && parent.children % 2 === 0)) throw new PlistError('plist_malformed');
  if (parent.name === 'plist' && parent.children > 0) throw new PlistError('plist_malformed');
  if (isKey) {
    if (parent.keys.has(content)) throw new PlistError('plist_duplicate_key');
    parent.keys.add(content);
  }
  parent.children++;
}

function close(open: OpenElement[], name: string): void {
  const ended = open.pop();
  if (ended?.name !== name) throw new PlistError('plist_malformed');
  const complete = name === 'plist' ? ended.children === 1 : name !== 'dict' || ended.children % 2 === 0;
  if (!complete) throw new PlistError('plist_malformed');
}

function checkContent(name: string, content: string): void {
  if (!Object.hasOwn(CONTENT, name)) throw new PlistError('plist_malformed');
  checkReferences(content);
  if (CONTENT[name]?.test(content) !== true) throw new PlistError('plist_malformed');
  if (name === 'key' && (content.length > MAX_KEY_LENGTH || content === '__proto__')) throw new PlistError('plist_malformed');
  if (name === 'data' && !isBase64(content.replace(/\s+/g, ''))) throw new PlistError('plist_malformed');
}

/** Permits only XML's predefined entities and references to legal characters (XML 1.0 sections 2.2 and 4.6). */
function checkReferences(content: string): void {
  if (!content.includes('&')) return;
  let known = 0;
  for (const [, decimal, hexadecimal] of content.matchAll(REFERENCE)) {
    known++;
    if (decimal === undefined && hexadecimal === undefined) continue;
    const point = decimal === undefined ? Number.parseInt(hexadecimal ?? '', 16) : Number(decimal);
    if (point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff)) throw new PlistError('plist_entity_refused');
    if (FORBIDDEN_CHARACTERS.test(String.fromCodePoint(point))) throw new PlistError('plist_entity_refused');
  }
  if (content.split('&').length - 1 !== known) throw new PlistError('plist_entity_refused');
}

function isBase64(text: string): boolean {
  return text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text);
}

function afterEnd(text: string, at: number, name: string): number {
  const tag = match(TAG, text, at);
  if (tag === null && text.startsWith('<!', at)) throw new PlistError('plist_dtd_refused');
  if (tag?.[0] !== `</${name}>`) throw new PlistError('plist_malformed');
  return at + tag[0].length;
}

/** Skips whitespace between elements. Rejects other text, and anything after the end. */
function afterBlank(text: string, at: number, atEnd: boolean): number {
  const between = match(TEXT, text, at)?.[0] ?? '';
  if (between.trim() !== '') throw new PlistError(between.includes('&') ? 'plist_entity_refused' : 'plist_malformed');
  const next = at + between.length;
  if (!atEnd && next >= text.length) throw new PlistError('plist_malformed');
  return next;
}

function match(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
}
