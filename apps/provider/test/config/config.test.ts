/** Settings: valid files, errors for the owner, and edits of single keys. */
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { parse } from 'smol-toml';
import { describe, expect, it } from 'vitest';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { DEFAULTS } from '../../src/config/config.js';
import { dataDirOf } from '../../src/config/data-dir.js';
import { nearest } from '../../src/config/did-you-mean.js';
import { editConfig, type TomlValue, withChange } from '../../src/config/edit-config.js';
import { lineAndColumn, locate } from '../../src/config/locate.js';
import { ConfigError, parseConfig, readConfig } from '../../src/config/read-config.js';

const dir = temporaryDirectory('config');

const problemOf = (text: string): string => {
  try {
    parseConfig(text, 'config.toml');
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
  return 'none';
};

const FULL = `# My Mac
coordinator = "https://coordinator.example" # the one
simulated_enclave = false
log_level = "info"

[models]
slots = 4
context = 8192
kv_cache_type = "q8_0"
reserve_gb = 8
keep = "idle"
idle_minutes = 10

# When I am away
[availability]
time_zone = "Europe/Berlin"
windows = [
  { days = ["mon", "tue"], from = "22:00", to = "07:00" }, # nights
  { from = "12:00", to = "13:00" },
]
only_when_idle_minutes = 10
on_battery = "stop"
when_hot = "serve"
when_leaving = "hand_back"

[update]
automatic = false

[enrolment]
enrol = true

[hardening]
engine_network = "allow"
`;

describe('a file of settings', () => {
  it('may say everything', () => {
    expect(parseConfig(FULL, 'x')).toEqual({
      coordinator: 'https://coordinator.example',
      simulated_enclave: false,
      log_level: 'info',
      remote_control: true,
      notifications: true,
      models: { slots: 4, context: 8192, kv_cache_type: 'q8_0', reserve_gb: 8, keep: 'idle', idle_minutes: 10 },
      availability: {
        time_zone: 'Europe/Berlin',
        windows: [
          { days: ['mon', 'tue'], from: '22:00', to: '07:00' },
          { from: '12:00', to: '13:00' },
        ],
        only_when_idle_minutes: 10,
        on_battery: 'stop',
        when_hot: 'serve',
        when_leaving: 'hand_back',
      },
      update: { automatic: false, channel: 'stable' },
      enrolment: { enrol: true },
      hardening: { engine_network: 'allow' },
    });
  });

  it('may say nothing, or not be there', () => {
    expect(parseConfig('', 'x')).toEqual(DEFAULTS);
    expect(readConfig(join(dir, 'none.toml'))).toEqual(DEFAULTS);
    expect(DEFAULTS).toEqual({
      simulated_enclave: false,
      log_level: 'info',
      remote_control: true,
      notifications: true,
      models: { kv_cache_type: 'f16', keep: 'always', idle_minutes: 10 },
      availability: { windows: [], on_battery: 'stop', when_hot: 'stop', when_leaving: 'finish' },
      update: { automatic: true, channel: 'stable' },
      enrolment: { enrol: false },
      hardening: { engine_network: 'deny' },
    });
  });

  it.each([
    ['coordinator = "https://x.example"\n[modles]\nslots = 3', 'config.toml:2:1: there is no setting modles (did you mean models?)'],
    ['[models]\n  contxt = 9', 'config.toml:2:3: there is no setting models.contxt (did you mean context?)'],
    ['[models]\nzebra = 9', 'config.toml:2:1: there is no setting models.zebra'],
    ['[models]\nslots = 0', 'config.toml:2:1: models.slots must be a whole number from 1 to 256'],
    ['[models]\nslots = 1.5', 'config.toml:2:1: models.slots must be a whole number from 1 to 256'],
    ['[models]\nreserve_gb = "8"', 'config.toml:2:1: models.reserve_gb must be a number of gigabytes from 0 to 4096'],
    ['[models]\nkv_cache_type = "q4_0"', 'config.toml:2:1: models.kv_cache_type must be one of "f16", "q8_0"'],
    ['models = 3', 'config.toml:1:1: models must be a table of settings'],
    [
      '[availability]\nwindows = [\n  { form = "22:00", to = "05:00" },\n]',
      'config.toml:3:5: there is no setting availability.windows.0.form (did you mean from?)',
    ],
    [
      '[availability]\nwindows = [{ from = "22:00", to = "25:00" }]',
      'config.toml:2:30: availability.windows.0.to must be a time of day such as "07:00"',
    ],
    [
      '[[availability.windows]]\nfrom = "1"\nto = "07:00"',
      'config.toml:2:1: availability.windows.0.from must be a time of day such as "22:00"',
    ],
    [
      '[[availability.windows]]\nfrom = "01:00"\nto = "07:00"\n[[availability.windows]]\nfrom = "09:00"',
      'config.toml:4:1: availability.windows.1 needs to',
    ],
    ['availability.on_battery = "sreve"', 'config.toml:1:14: availability.on_battery must be one of "stop", "serve"'],
    ['[availability]\ntime_zone = "Europe/Nowhere"', 'config.toml:2:1: availability.time_zone: there is no time zone "Europe/Nowhere"'],
    ['coordinator = "ftp://x"', 'config.toml:1:1: coordinator must be an http, https, ws or wss address'],
    ['log_level = ', 'config.toml:1:13: this is not TOML: invalid value'],
    ['[models]\n[models]', 'config.toml:2:2: this is not TOML: trying to redefine an already defined table or value'],
  ])('is refused with its place: %j', (text, sentence) => {
    expect(problemOf(text)).toBe(sentence);
  });

  it('refuses arbitrary garbage with a ConfigError only', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: 'binary' }), fc.stringMatching(/^[[\]{}="'a-z0-9.,# \n]{0,60}$/)), (text) => {
        expect(problemOf(text)).toBeTypeOf('string');
      }),
      { numRuns: 50 },
    );
    const path = join(dir, 'malformed.toml');
    writeFileSync(path, Buffer.from([0xff, 0xfe, 0x00, 0x9f]));
    expect(() => readConfig(path)).toThrow(`${path}: the file is not UTF-8 text`);
    writeFileSync(path, '#'.repeat(300 * 1024));
    expect(() => readConfig(path)).toThrow('larger than 256 KiB');
    expect(() => readConfig(dir)).toThrow('cannot be read (EISDIR)');
  });
});

describe('places', () => {
  it('cover keys, values and tables, with any text in between', () => {
    const text = `a."b.c".'d' = """x # no comment\n[no.table]\n"""\n[ t . u ]\nv = [1, # one\n { w = '}' , x = 1979-05-27 07:32:00 }]\n[[l]]\n[[l]]\n[l.m]\nn=1`;
    const places = locate(text);
    const textAt = (name: string): string | undefined => {
      const place = places.get(name);
      return place === undefined ? undefined : text.slice(place.valueStart, place.valueEnd);
    };
    expect(textAt('/a/b.c/d')).toBe('"""x # no comment\n[no.table]\n"""');
    expect(textAt('/t/u/v/1/w')).toBe("'}'");
    expect(textAt('/t/u/v/1/x')).toBe('1979-05-27 07:32:00');
    expect(textAt('/l/1/m/n')).toBe('1');
    expect(lineAndColumn(text, places.get('/l/1/m/n')?.errorAt ?? 0)).toEqual({ line: 10, column: 1 });
  });
});

describe('changing a setting', () => {
  const windows = [{ days: ['sat'], from: '00:00', to: '24:00' }];

  it('preserves every other line', () => {
    const changed = withChange(FULL, { path: ['availability', 'windows'], value: windows });
    expect(changed).toBe(FULL.replace(/windows = \[[\s\S]*?\n\]/, 'windows = [{ days = ["sat"], from = "00:00", to = "24:00" }]'));
    expect(withChange(FULL, { path: ['models', 'slots'], value: null })).toBe(FULL.replace('slots = 4\n', ''));
    expect(withChange(FULL, { path: ['coordinator'], value: 'https://other.example' })).toBe(
      FULL.replace('coordinator.example', 'other.example'),
    );
    expect(withChange(FULL, { path: ['models', 'nothing'], value: null })).toBe(FULL);
  });

  it.each([
    '',
    '[availability]',
    '# mine\n\n[availability]\n# inside\n',
    'availability = {}',
    'availability = { on_battery = "serve" }',
    'availability.on_battery = "serve"\n[models]\nslots = 2\n',
    '[[availability.windows]]\nfrom = "01:00"\nto = "02:00"\n\n[[availability.windows]] # two\nfrom = "03:00"\nto = "04:00"\n[models]\nslots = 2\n',
    '[availability]\nwindows = [ # none\n]\n[models]\nslots = 2',
    '[models]\nslots = 2\n\n[availability]\nwhen_hot = "serve"\n\n# of the update\n[update]\nautomatic = false',
  ])('sets, sets again and takes out: %j', (text) => {
    const before = parseConfig(text, 'x');
    const set = withChange(text, { path: ['availability', 'windows'], value: windows });
    expect(parseConfig(set, 'x')).toEqual({ ...before, availability: { ...before.availability, windows } });
    const again = withChange(set, { path: ['availability', 'only_when_idle_minutes'], value: 5 });
    expect(parseConfig(again, 'x').availability).toMatchObject({ windows, only_when_idle_minutes: 5 });
    const top = withChange(again, { path: ['coordinator'], value: 'https://"quoted"\\\u007f.example' });
    expect(parse(top).coordinator).toBe('https://"quoted"\\\u007f.example');
    const out = withChange(set, { path: ['availability', 'windows'], value: null });
    expect(parseConfig(out, 'x')).toEqual({ ...before, availability: { ...before.availability, windows: [] } });
    const comments = (toml: string): string[] => (toml.match(/#.*/g) ?? []).filter((comment) => !/none|two/.test(comment));
    expect(comments(out)).toEqual(comments(text));
  });

  it('preserves blank lines in strings, and sets a whole table', () => {
    const text = '[[availability.windows]]\nfrom = "01:00"\nto = "02:00"\n\n[notes]\ntext = """\n   \nend\n"""\n';
    const set = withChange(text, { path: ['availability', 'windows'], value: windows });
    expect(parse(set)).toEqual({ ...parse(text), availability: { windows } });
    const table = withChange('# mine\n[models] # of mine\nslots = 2 # few\nkeep = "idle"\n', {
      path: ['models'],
      value: { slots: 3, context: 4096 },
    });
    expect(parse(withChange('[[models]]\na = 1\n[[models]]\n', { path: ['models'], value: { b: 1 } }))).toEqual({ models: { b: 1 } });
    expect(table).toBe('# mine\n[models] # of mine\nslots = 3 # few\ncontext = 4096\n');
  });

  /** Statements of a file. `@` stands for a trailing comment, placed before its path. */
  const layouts: Readonly<Record<string, readonly (readonly string[])[]>> = {
    coordinator: [
      [],
      ['coordinator = "https://a" @coordinator'],
      ['coordinator = """https://a\n   \n# no comment"""@coordinator', ''],
      ["coordinator = '''\n\t\n[no.table]\n'''", '', '   '],
    ],
    models: [
      [],
      ['models.slots = 2 @models.slots', 'models."a b".c = 1 @models.a b', 'models."a b".d = 2 @models.a b'],
      ['models = { slots = 2, "a b" = { c = 1 } } @models'],
      [
        '[models] @models',
        'slots = 2 @models.slots',
        '# above keep',
        'keep = """\n  \n"""',
        '',
        '[models."a b"] @models.a b',
        'c = 1 @models.a b',
      ],
    ],
    availability: [
      [],
      ['[availability] @availability', 'windows = [ # none\n  { from = "1" } ]', 'on = true @availability.on'],
      [
        '[availability]',
        'on = true @availability.on',
        '',
        '[[availability.windows]] @availability.windows',
        'from = "1" @availability.windows',
      ],
      [
        '[[availability.windows]] @availability.windows',
        'note = """\n   \n"""',
        '# above to',
        'to = "2" @availability.windows',
        '',
        '[other]',
        'a = 1 @other',
        '[[availability.windows]]',
        'to = "3"',
      ],
    ],
    last: [[], ['# above last', '[last] @last', "text = '''\n   \n \n'''", 'end = 1 @last'], ['[last]']],
  };
  const anyText = fc
    .record({
      parts: fc.tuple(...Object.values(layouts).map((each) => fc.constantFrom(...each))),
      newline: fc.constantFrom('\n', '\n', '\r\n'),
      end: fc.constantFrom('\n', ''),
    })
    .map(({ parts, newline, end }) => `${parts.flat().join('\n')}${end}`.replaceAll('@', '# on ').replaceAll('\n', newline));
  const anyChange = fc
    .record({
      path: fc.constantFrom<readonly [string] | readonly [string, string]>(
        ['coordinator'],
        ['models'],
        ['models', 'slots'],
        ['models', 'a b'],
        ['availability'],
        ['availability', 'windows'],
        ['last', 'text'],
        ['new', 'key'],
      ),
      isOut: fc.boolean(),
      one: fc.constantFrom<TomlValue>(5, 'x\n  \ny', true),
      many: fc.constantFrom<TomlValue>([], windows, [...windows, ...windows], { from: '1' }),
      table: fc.constantFrom<TomlValue>({ slots: 1 }, { on: false, windows }, { 'a b': [1], keep: 'k' }, {}),
    })
    .map(({ path, isOut, one, many, table }) => ({
      path,
      value: isOut ? null : path.length === 1 && path[0] !== 'coordinator' ? table : path[1] === 'windows' ? many : one,
    }));
  const settings = (text: string): Record<string, object | undefined> => JSON.parse(JSON.stringify(parse(text)));
  /** An empty table equals an absent one. */
  const filled = (value: object): object =>
    Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined && JSON.stringify(each) !== '{}'));

  it('applies the change and preserves comments of other settings', () => {
    fc.assert(
      fc.property(anyText, anyChange, (text, { path, value }) => {
        const wanted: Record<string, unknown> = settings(text);
        const [section, key] = path;
        if (key === undefined) wanted[section] = value ?? undefined;
        else wanted[section] = filled({ ...(wanted[section] as object), [key]: value ?? undefined });
        const changed = withChange(text, { path, value });
        const found = settings(changed);
        if (key !== undefined && found[section] !== undefined) found[section] = filled(found[section]);
        expect(filled(found)).toEqual(filled(wanted));
        const name = path.join('.');
        for (const comment of text.match(/# (on|above) [\w .]+/g) ?? []) {
          const owner = comment.slice('# on '.length).trim();
          if (comment.startsWith('# above') || !(owner === name || owner.startsWith(`${name}.`))) expect(changed).toContain(comment.trim());
        }
        expect(withChange(changed, { path, value })).toBe(changed);
      }),
      { numRuns: 500, seed: 36 },
    );
  });

  it('puts a setting of the top below the others, and not against the next table', () => {
    const set = withChange('coordinator = "https://a"\n\n[availability]\nwindows = []\n', { path: ['simulated_enclave'], value: true });
    expect(set).toBe('coordinator = "https://a"\nsimulated_enclave = true\n\n[availability]\nwindows = []\n');
  });

  it('reports an unreadable file like other readers', () => {
    mkdirSync(join(dir, 'folder'));
    expect(() => editConfig(join(dir, 'folder'), [])).toThrow(/folder: the file cannot be read \(EISDIR\)$/);
    writeFileSync(join(dir, 'bytes'), Buffer.from([0x23, 0xff]));
    expect(() => editConfig(join(dir, 'bytes'), [])).toThrow(/bytes: the file is not UTF-8 text$/);
  });

  it('writes atomically with mode 0600', () => {
    const path = join(dir, 'new', 'config.toml');
    expect(editConfig(path, [{ path: ['models', 'keep'], value: 'idle' }]).models.keep).toBe('idle');
    chmodSync(path, 0o644);
    editConfig(path, [
      { path: ['update', 'automatic'], value: false },
      { path: ['models', 'keep'], value: null },
    ]);
    expect(readConfig(path)).toEqual({ ...DEFAULTS, update: { automatic: false, channel: 'stable' } });
    expect(statSync(path).mode & 0o777).toBe(0o600);
    const before = readFileSync(path, 'utf8');
    expect(() => editConfig(path, [{ path: ['models', 'keep'], value: 'sometimes' }])).toThrow('models.keep must be one of');
    expect(readFileSync(path, 'utf8')).toBe(before);
    expect(readdirSync(join(dir, 'new'))).toEqual(['config.toml']);
  });
});

it('the data directory comes from the flag, the environment, or the home directory', () => {
  mkdirSync(join(dir, 'flag'), { recursive: true });
  expect(dataDirOf({ 'data-dir': join(dir, 'flag') }, { INFERENCE_PROVIDER_HOME: '/other' })).toBe(join(dir, 'flag'));
  expect(dataDirOf({}, { INFERENCE_PROVIDER_HOME: '/other' })).toBe('/other');
  expect(dataDirOf({}, {})).toBe(join(homedir(), '.inference-provider'));
});

it('a near word is near', () => {
  expect(nearest('modles', ['models', 'modal'])).toBe('models');
  expect(nearest('stauts', ['status', 'start'])).toBe('status');
  expect(nearest('zebra', ['status', 'start'])).toBeNull();
  expect(nearest('x', [])).toBeNull();
});
