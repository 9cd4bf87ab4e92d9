/** Mutates a request body: JSON structure, text or bytes. The result may be invalid. */

import type { SeededRandom } from '../seeded-random.js';
import type { Json } from './bodies.js';

/** Text that must not appear in the response to a refused request. */
export const MARKUP = '<script>alert(1)</script>';

/** JSON texts that no serializer writes or that are hard to parse. */
const RAW_TEXTS: readonly string[] = [
  '1e999',
  '-1e999',
  '1e-999',
  '-0',
  '0.1e1',
  '9007199254740993',
  '123456789012345678901234567890',
  '"\\u0000"',
  '"\\ud800"',
  '"\\udc00\\ud800"',
  '"\\uD83D"',
  '"\u2028"',
  'NaN',
  'undefined',
  "'single'",
  '01',
  '"\\x41"',
  '"unclosed',
  '"tab\tinside"',
  '[1,]',
  '{"a":1,"a":2}',
  '{"__proto__":{"polluted":true}}',
  '{"constructor":{"prototype":{"polluted":true}}}',
  `${'['.repeat(5000)}${']'.repeat(5000)}`,
  `${'{"a":'.repeat(2000)}1${'}'.repeat(2000)}`,
];

const VALUES: readonly Json[] = [
  null,
  true,
  false,
  0,
  1,
  -1,
  0.5,
  2.0000001,
  1e308,
  2 ** 31,
  2 ** 53,
  -(2 ** 63),
  '',
  ' ',
  '0',
  'true',
  MARKUP,
  '\r\nset-cookie: a=b',
  '../../etc/passwd',
  'data:image/png;base64,AAAA',
  'http://127.0.0.1:1/secret',
  '\u202egnirts',
  '🙂'.repeat(50),
  'x'.repeat(20_000),
  [],
  [[]],
  [null],
  {},
  { type: 'text' },
  { type: 'image_url', image_url: { url: 'http://127.0.0.1:1/x.png' } },
  { type: 'image', source: { type: 'url', url: 'http://127.0.0.1:1/x.png' } },
  { type: MARKUP },
  { $ref: '#' },
  { type: 'object', properties: { a: { $ref: '#/properties/a' } } },
  { pattern: '(a+)+$', type: 'string' },
  { anyOf: [] },
  Array.from({ length: 300 }, () => ({})),
  Array.from({ length: 300 }, (_, index) => `stop${index}`),
];

const NAMES: readonly string[] = [
  '__proto__',
  'constructor',
  'toString',
  '',
  ' ',
  'model',
  'type',
  'role',
  'content',
  '\u0000',
  MARKUP,
  '🙂',
];

type Tree = { [name: string]: Tree } | Tree[] | string | number | boolean | null;

/** A position in a tree: container and key. */
interface Place {
  readonly holder: { [name: string]: Tree } | Tree[];
  readonly key: string | number;
}

/** Bytes derived from the body by one or two structural mutations, sometimes also of text or bytes. */
export function mutated(body: Json, random: SeededRandom): Buffer {
  const raw: string[] = [];
  const root: { [name: string]: Tree } = { body: structuredClone(body) as Tree };
  for (let left = 1 + random.below(2); left > 0; left--) mutateTree(root, raw, random);
  let text = JSON.stringify(root.body) ?? '';
  raw.forEach((value, index) => {
    text = text.replace(JSON.stringify(placeholder(index)), () => value);
  });
  if (random.happens(0.1)) text = mutateText(text, random);
  const bytes = Buffer.from(text, 'utf8');
  return random.happens(0.05) ? mutateBytes(bytes, random) : bytes;
}

/** Random bytes unrelated to any body. */
export function randomBody(random: SeededRandom): Buffer {
  const kind = random.below(8);
  if (kind === 0) return Buffer.alloc(0);
  if (kind === 1) return Buffer.from(Array.from({ length: 1 + random.below(2000) }, () => random.below(256)));
  if (kind === 2) return Buffer.from('['.repeat(100_000));
  if (kind === 3) return Buffer.from('{"a":'.repeat(50_000));
  if (kind === 4) return Buffer.from(`model=x&messages=${MARKUP}`);
  if (kind === 5) return Buffer.from('\ufeff{}');
  if (kind === 6) return Buffer.from(random.pick(['null', '1', '"text"', '[]', '{}', 'true', '-', '{}{}', ' ']));
  return Buffer.from(random.pick(RAW_TEXTS));
}

function placeholder(index: number): string {
  return `\u0001raw ${index}\u0001`;
}

function placesIn(tree: Tree, found: Place[] = []): Place[] {
  if (typeof tree !== 'object' || tree === null) return found;
  for (const key of Array.isArray(tree) ? tree.keys() : Object.keys(tree)) {
    found.push({ holder: tree, key });
    placesIn((tree as Record<string | number, Tree>)[key] as Tree, found);
  }
  return found;
}

function mutateTree(root: { [name: string]: Tree }, raw: string[], random: SeededRandom): void {
  const places = placesIn(root);
  const { holder, key } = random.pick(places);
  const at = holder as Record<string | number, Tree>;
  const put = (value: Tree): void => addMember(holder, key, value);
  switch (random.below(8)) {
    case 0:
    case 1:
    case 2:
      put(structuredClone(random.pick(VALUES)) as Tree);
      break;
    case 3:
      raw.push(random.pick(RAW_TEXTS));
      put(placeholder(raw.length - 1));
      break;
    case 4:
      if (Array.isArray(holder)) holder.splice(key as number, 1);
      else if (holder !== root) delete holder[key as string];
      break;
    case 5: {
      const other = random.pick(places);
      put(structuredClone((other.holder as Record<string | number, Tree>)[other.key] ?? null));
      break;
    }
    case 6:
      put(random.happens(0.5) ? [at[key] as Tree] : { type: 'text', text: at[key] as Tree });
      break;
    default:
      if (Array.isArray(holder)) holder.push(...Array.from({ length: 1 + random.below(40) }, () => structuredClone(at[key] as Tree)));
      else addMember(holder, random.happens(0.5) ? random.pick(NAMES) : `${String(key)}s`, structuredClone(at[key] as Tree));
  }
}

/** Sets a member, also one named `__proto__`. */
function addMember(holder: object, name: string | number, value: Tree): void {
  Object.defineProperty(holder, name, { value, enumerable: true, writable: true, configurable: true });
}

function mutateText(text: string, random: SeededRandom): string {
  const at = random.below(text.length);
  switch (random.below(5)) {
    case 0:
      return text.slice(0, at);
    case 1:
      return `${text}${random.pick(['}', ',', '\u0000', text, ' '.repeat(5000)])}`;
    case 2:
      return text.replace('{', '{"model":"another","messages":[],"stream":true,');
    case 3:
      return `${text.slice(0, at)}${random.pick(['\u0000', '"', '\\', '{', '\ufeff', '/**/'])}${text.slice(at)}`;
    default:
      return `\ufeff${text}`;
  }
}

function mutateBytes(bytes: Buffer, random: SeededRandom): Buffer {
  if (bytes.length === 0) return bytes;
  const at = random.below(bytes.length);
  const inserted = Buffer.from(random.pick([[0xff], [0xc3, 0x28], [0xed, 0xa0, 0x80], [0xf5, 0x80, 0x80, 0x80], [0x00]]));
  return Buffer.concat([bytes.subarray(0, at), inserted, bytes.subarray(at)]);
}
