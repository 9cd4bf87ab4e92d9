import { buildBinary } from 'plist';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { encodePlist, type PlistValue, parsePlist } from '../../src/devices/plist/plist.js';
import { PLIST_LIMITS } from '../../src/devices/plist/value.js';

const DOCTYPE = '<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">';

function document(body: string, doctype = DOCTYPE): Uint8Array {
  return Buffer.from(`<?xml version="1.0" encoding="UTF-8"?>\n${doctype}\n<plist version="1.0">\n${body}\n</plist>\n`);
}

function codeOf(bytes: Uint8Array): string {
  const parsed = parsePlist(bytes);
  return parsed.ok ? 'accepted' : parsed.code;
}

function readPlist(bytes: Uint8Array): PlistValue {
  const parsed = parsePlist(bytes);
  if (!parsed.ok) throw new Error(parsed.code);
  return parsed.value;
}

/** Builds a binary property list from the bytes of its objects. References have one byte. */
function binary(objects: readonly (readonly number[])[], top = 0): Uint8Array {
  const header = [...Buffer.from('bplist00')];
  const body: number[] = [];
  const offsets = objects.map((object) => {
    const offset = header.length + body.length;
    body.push(...object);
    return offset;
  });
  const table = header.length + body.length;
  const trailer = Buffer.alloc(32);
  trailer.writeUInt8(2, 6);
  trailer.writeUInt8(1, 7);
  trailer.writeBigUInt64BE(BigInt(objects.length), 8);
  trailer.writeBigUInt64BE(BigInt(top), 16);
  trailer.writeBigUInt64BE(BigInt(table), 24);
  return Buffer.from([...header, ...body, ...offsets.flatMap((offset) => [offset >> 8, offset & 255]), ...trailer]);
}

/** A small binary property list with a range of bytes overwritten. */
function tampered(from: number, to: number, byte: number): Uint8Array {
  const bytes = Uint8Array.from(binary([[0x09]]));
  bytes.subarray(from, to).fill(byte);
  return bytes;
}

describe('property lists', () => {
  // A parser might report oddities to the console, but device input must not be logged.
  const spies = [vi.spyOn(console, 'error'), vi.spyOn(console, 'warn'), vi.spyOn(console, 'log')];
  beforeAll(() => {
    for (const spy of spies) spy.mockClear();
  });
  afterAll(() => {
    for (const spy of spies) {
      expect(spy).not.toHaveBeenCalled();
      spy.mockRestore();
    }
  });

  it('parse every kind of value from XML', () => {
    const value = readPlist(
      document(
        '<dict><key>text</key><string>a &amp; &#98;</string><key>empty</key><string/><key>yes</key><true/><key>no</key><false></false>' +
          '<key>count</key><integer>-12</integer><key>ratio</key><real>1.5</real><key>bytes</key><data>\n\tAQID\n\tBA==</data>' +
          '<key>when</key><date>2026-01-02T03:04:05Z</date><key>list</key><array><string>x</string><dict/></array></dict>',
      ),
    );
    expect(value).toEqual(
      new Map<string, unknown>([
        ['text', 'a & b'],
        ['empty', ''],
        ['yes', true],
        ['no', false],
        ['count', -12],
        ['ratio', 1.5],
        ['bytes', new Uint8Array([1, 2, 3, 4])],
        ['when', new Date('2026-01-02T03:04:05Z')],
        ['list', ['x', new Map()]],
      ]),
    );
  });

  it('parse the same values from a binary list', () => {
    const object = { a: 'text', ü: 1 };
    expect(codeOf(buildBinary(object))).toBe('plist_malformed');
    const plain = { text: 'grün 😀', count: 300, ratio: 0.25, yes: true, bytes: new Uint8Array(40).fill(7), list: ['x', { deep: 'y' }] };
    expect(readPlist(buildBinary(plain))).toEqual(
      new Map<string, unknown>([
        ['text', 'grün 😀'],
        ['count', 300],
        ['ratio', 0.25],
        ['yes', true],
        ['bytes', new Uint8Array(40).fill(7)],
        ['list', ['x', new Map([['deep', 'y']])]],
      ]),
    );
  });

  it('round-trip with arbitrary texts', () => {
    const text = '<key>&]]>"\'</key> 😀';
    const bytes = new Uint8Array([0, 255, 16]);
    expect(readPlist(Buffer.from(encodePlist({ text, bytes, nested: { list: [1, true] } })))).toEqual(
      new Map<string, unknown>([
        ['text', text],
        ['bytes', bytes],
        ['nested', new Map([['list', [1, true]]])],
      ]),
    );
  });

  const bomb = '<!DOCTYPE plist [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>';
  const external = '<!DOCTYPE plist SYSTEM "file:///etc/passwd">';
  const refused: readonly (readonly [string, Uint8Array, string])[] = [
    ['an entity bomb', document('<string>&b;</string>', bomb), 'plist_dtd_refused'],
    ['an internal subset behind the usual line', document('<string/>', DOCTYPE.replace('>', ' [<!ENTITY a "b">]>')), 'plist_dtd_refused'],
    ['a document type of another system', document('<string/>', external), 'plist_dtd_refused'],
    ['an entity declared in the middle', document('<array><!ENTITY a "b"></array>'), 'plist_dtd_refused'],
    ['an entity that nobody declared', document('<string>&lol;</string>'), 'plist_entity_refused'],
    ['a reference to no character', document('<string>&#0;</string>'), 'plist_entity_refused'],
    ['a reference to half a character', document('<string>&#xD800;</string>'), 'plist_entity_refused'],
    ['an ampersand alone', document('<string>a & b</string>'), 'plist_entity_refused'],
    ['entities between elements', document('<array>&amp;</array>'), 'plist_entity_refused'],
    ['a CDATA section', document('<string><![CDATA[x]]></string>'), 'plist_dtd_refused'],
    ['a processing instruction', document('<array><?php x ?></array>'), 'plist_malformed'],
    ['a comment', document('<array><!-- x --></array>'), 'plist_dtd_refused'],
    ['one key twice', document('<dict><key>a</key><true/><key>a</key><false/></dict>'), 'plist_duplicate_key'],
    ['one key twice, once in disguise', document('<dict><key>a</key><true/><key>&#97;</key><false/></dict>'), 'plist_malformed'],
    ['a key that is a prototype', document('<dict><key>__proto__</key><dict/></dict>'), 'plist_malformed'],
    ['a key without its value', document('<dict><key>a</key></dict>'), 'plist_malformed'],
    ['a value without its key', document('<dict><true/></dict>'), 'plist_malformed'],
    ['two values', document('<true/><true/>'), 'plist_malformed'],
    ['no value', document(''), 'plist_malformed'],
    ['an element of another language', document('<script>x</script>'), 'plist_malformed'],
    ['attributes', document('<string onload="x">x</string>'), 'plist_malformed'],
    ['text beside elements', document('<array>x<true/></array>'), 'plist_malformed'],
    ['a number that is none', document('<integer>12abc</integer>'), 'plist_malformed'],
    ['data that are no base64', document('<data>AQI</data>'), 'plist_malformed'],
    ['crossed elements', document('<array><dict></array></dict>'), 'plist_malformed'],
    ['something after the end', Buffer.concat([document('<true/>'), Buffer.from('<plist/>')]), 'plist_malformed'],
    ['an unfinished list', document('<array>').subarray(0, -12), 'plist_malformed'],
    ['bytes that are no UTF-8', Buffer.concat([document('<string>').subarray(0, -12), Buffer.from([0xff, 0xfe])]), 'plist_malformed'],
    ['control characters', document('<string>\u0007</string>'), 'plist_malformed'],
    ['nothing', new Uint8Array(), 'plist_malformed'],
    ['too deep a list', document('<array>'.repeat(40) + '</array>'.repeat(40)), 'plist_too_deep'],
    ['a list of ten thousand levels', document('<array>'.repeat(10_000) + '</array>'.repeat(10_000)), 'plist_too_deep'],
    ['too many values', document(`<array>${'<true/>'.repeat(PLIST_LIMITS.values)}</array>`), 'plist_too_many_values'],
    ['too many bytes', document(`<string>${'x'.repeat(PLIST_LIMITS.bytes)}</string>`), 'plist_too_large'],
  ];
  it.each(refused)('refuses %s', (_what, bytes, code) => {
    expect(codeOf(bytes)).toBe(code);
  });

  it('of a hundred megabytes are rejected without parsing', () => {
    const huge = Buffer.alloc(100 * 1024 * 1024);
    expect(codeOf(huge)).toBe('plist_too_large');
  });

  const array = (...references: number[]): number[] => [0xa0 | references.length, ...references];
  const shared = Array.from({ length: 14 }, (_, level) => (level === 13 ? [0x09] : array(...Array.from({ length: 10 }, () => level + 1))));
  const long = [0x5f, 0x11, 0x40, 0x00, ...Array.from({ length: 0x4000 }, () => 0x61)];
  const refusedBinaries: readonly (readonly [string, Uint8Array, string])[] = [
    ['a list that unfolds to ten trillion values', binary(shared), 'plist_too_many_values'],
    ['a list that contains itself', binary([array(0)]), 'plist_too_deep'],
    ['one long text used a hundred times', binary([[0xaf, 0x10, 100, ...Array.from({ length: 100 }, () => 1)], long]), 'plist_too_large'],
    ['a reference to nothing', binary([array(9)]), 'plist_malformed'],
    ['a text longer than the document', binary([[0x5f, 0x12, 0x7f, 0xff, 0xff, 0xff]]), 'plist_malformed'],
    ['an array longer than the document', binary([[0xaf, 0x12, 0x7f, 0xff, 0xff, 0xff]]), 'plist_malformed'],
    ['one key twice', binary([[0xd2, 1, 1, 2, 2], [0x51, 0x61], [0x09]]), 'plist_duplicate_key'],
    ['a key that is no text', binary([[0xd1, 1, 1], [0x09]]), 'plist_malformed'],
    ['a kind of value that property lists in XML cannot hold', binary([[0x80, 1]]), 'plist_malformed'],
    ['a number of objects that cannot be', tampered(-24, -16, 0xff), 'plist_too_many_values'],
    ['a header alone', Buffer.from('bplist00'), 'plist_malformed'],
    ['another version', tampered(6, 8, 0x39), 'plist_malformed'],
  ];
  it.each(refusedBinaries)('refuses a binary list: %s', (_what, bytes, code) => {
    expect(codeOf(bytes)).toBe(code);
  });

  it('survive every flipped byte and every truncation of a real list', () => {
    const samples = [
      document('<dict><key>UDID</key><string>A-1</string><key>List</key><array><data>AQID</data></array></dict>'),
      buildBinary({ UDID: 'A-1', List: [new Uint8Array([1, 2, 3])] }),
    ];
    let refusals = 0;
    for (const sample of samples) {
      for (let i = 0; i < sample.length; i++) {
        for (const flip of [1, 0x80, 0xff]) {
          const changed = Uint8Array.from(sample);
          changed[i] = (changed[i] as number) ^ flip;
          if (!parsePlist(changed).ok) refusals++;
        }
        if (!parsePlist(sample.subarray(0, i)).ok) refusals++;
      }
    }
    expect(refusals).toBeGreaterThan(500);
  });
});
