import { formatNoteKey } from '@inference/protocol';
import { sha256 } from '@inference/protocol/crypto';
import { expect, it } from 'vitest';
import { StartupError } from '../../src/config/startup-error.js';
import { readTransparencyLog } from '../../src/transparency-log/settings.js';

const keyOf = (name: string, type: 'ed25519' | 'cosignature') =>
  formatNoteKey(sha256, { name, type, publicKey: new Uint8Array(32).fill(name.length) });
const WITNESSES = ['a', 'bb', 'ccc'].map((name) => `${keyOf(name, 'cosignature')} https://${name}.example/`).join(', ');

it('reads witnesses, and requires their majority by default', () => {
  expect(readTransparencyLog({})).toEqual({ origin: null, witnesses: [], quorum: 0 });
  const settings = readTransparencyLog({ LOG_WITNESSES: WITNESSES, LOG_ORIGIN: 'gateway.example/log' });
  expect(settings).toMatchObject({ origin: 'gateway.example/log', quorum: 2 });
  expect(settings.witnesses.map(({ key, url }) => [key.name, url])).toEqual([
    ['a', 'https://a.example'],
    ['bb', 'https://bb.example'],
    ['ccc', 'https://ccc.example'],
  ]);
  expect(readTransparencyLog({ LOG_WITNESSES: WITNESSES, LOG_WITNESS_QUORUM: '3' }).quorum).toBe(3);
});

it('refuses bad settings by name', () => {
  for (const [name, value] of [
    ['LOG_WITNESSES', keyOf('a', 'cosignature')],
    ['LOG_WITNESSES', `${keyOf('a', 'cosignature')} ftp://a.example`],
    ['LOG_WITNESSES', `${keyOf('a', 'ed25519')} https://a.example`],
    ['LOG_WITNESSES', 'a+00000000+AAAA https://a.example'],
    ['LOG_WITNESS_QUORUM', '1'],
    ['LOG_ORIGIN', 'two words'],
  ] as const) {
    expect(() => readTransparencyLog({ [name]: value }), `${name}=${value}`).toThrow(StartupError);
    expect(() => readTransparencyLog({ [name]: value })).toThrow(name);
  }
});
