import { randomUUID } from 'node:crypto';
import type { ProviderId } from '@inference/protocol';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { commandHistory, endCommand, matchCommand, recordCommand } from '../../src/database/devices/device-command-repository.js';
import { evidenceOfKey, noncesOfKey, storeEvidence, storeNonce } from '../../src/database/devices/device-evidence-repository.js';
import {
  activateDevice,
  bindDevice,
  endEnrolment,
  enrolmentOfDevice,
  enrolmentOfKey,
  enrolmentOfToken,
  offerEnrolment,
  takeDownload,
} from '../../src/database/devices/enrolment-repository.js';
import type { Database } from '../../src/database/tables.js';
import { describeDatabases, type TestDatabase } from '../support/databases.js';

const T0 = 1_790_000_000_000;
const HOUR = 3_600_000;

describeDatabases('the device repositories', (fresh) => {
  let test: TestDatabase;
  let database: Database;
  beforeEach(async () => {
    test = await fresh();
    database = await test.open();
  });
  afterEach(async () => {
    await database.destroy();
    await test.remove();
  });

  /** Offers an enrolment to a key, and downloads the profile. Returns the token's hash. */
  async function offered(key: string, now = T0): Promise<string> {
    const [downloadHash, tokenHash] = [randomUUID(), randomUUID()];
    const facts = { providerId: key.slice(0, 32) as ProviderId, seKeySha256: key, sePublicKey: 'BA==', serialNumber: 'SERIAL0001' };
    await offerEnrolment(database, { id: randomUUID(), ...facts, downloadHash, tokenHash: randomUUID(), now, expiresAt: now + HOUR });
    expect(await takeDownload(database, { downloadHash, tokenHash, now })).toMatchObject({ seKeySha256: key, state: 'offered' });
    return tokenHash;
  }

  const bind = (tokenHash: string, deviceId: string, now = T0) => bindDevice(database, { tokenHash, deviceId, now });

  it('serve a profile once, even to concurrent requests', async () => {
    const facts = { providerId: 'p' as ProviderId, seKeySha256: 'k', sePublicKey: 'BA==', serialNumber: 'S' };
    const offer = { ...facts, downloadHash: 'd', tokenHash: 't0', now: T0, expiresAt: T0 + HOUR };
    await offerEnrolment(database, { id: randomUUID(), ...offer });
    const takes = await Promise.all(['t1', 't2'].map((tokenHash) => takeDownload(database, { downloadHash: 'd', tokenHash, now: T0 })));
    expect(takes.filter((enrolment) => enrolment !== null)).toHaveLength(1);
    expect(await takeDownload(database, { downloadHash: 'd', tokenHash: 't3', now: T0 })).toBeNull();
    await offerEnrolment(database, { id: randomUUID(), ...offer, downloadHash: 'late' });
    expect(await takeDownload(database, { downloadHash: 'late', tokenHash: 't4', now: T0 + HOUR })).toBeNull();
    // A new offer replaces the previous one, downloaded or not.
    expect(await enrolmentOfToken(database, 't1')).toBeNull();
    expect(await enrolmentOfToken(database, 't2')).toBeNull();
  });

  it('bind no device to an offer without a download', async () => {
    const facts = { providerId: 'p' as ProviderId, seKeySha256: 'k', sePublicKey: 'BA==', serialNumber: 'S' };
    await offerEnrolment(database, { id: randomUUID(), ...facts, downloadHash: 'd', tokenHash: 't', now: T0, expiresAt: T0 + HOUR });
    expect(await bind('t', 'mac')).toEqual({ kind: 'enrolment_expired' });
    expect(await enrolmentOfToken(database, 't')).toBeNull();
  });

  it('bind a token to the first device that presents the token, and to no other', async () => {
    const token = await offered('a'.repeat(64));
    const bindings = await Promise.allSettled([bind(token, 'mac 1'), bind(token, 'mac 2')]);
    const bound = bindings.filter((one) => one.status === 'fulfilled' && one.value.kind === 'bound');
    expect(bound).toHaveLength(1);
    const device = (await enrolmentOfDevice(database, 'mac 1')) === null ? 'mac 2' : 'mac 1';
    expect(await bind(token, device)).toMatchObject({ kind: 'bound', ended: [] });
    expect(await bind(token, 'mac 3')).toEqual({ kind: 'token_of_other_device' });
    expect(await bind('unknown', 'mac 3')).toEqual({ kind: 'unknown_token' });
    expect(await bind(await offered('b'.repeat(64)), 'mac 3', T0 + HOUR)).toEqual({ kind: 'enrolment_expired' });
  });

  it('store one enrolment per device and per key: the newest ends the others', async () => {
    const [a, b] = ['a'.repeat(64), 'b'.repeat(64)];
    const first = await offered(a);
    await bind(first, 'mac');
    expect(await activateDevice(database, 'mac')).toMatchObject({ seKeySha256: a, state: 'active' });
    const second = await offered(b, T0 + 1);
    expect(await bind(second, 'mac', T0 + 1)).toMatchObject({ kind: 'bound', ended: [a] });
    expect(await enrolmentOfKey(database, a)).toBeNull();
    expect(await bind(first, 'mac', T0 + 2)).toEqual({ kind: 'enrolment_ended' });
    const third = await offered(b, T0 + 2);
    expect(await enrolmentOfKey(database, b)).toMatchObject({ state: 'bound', deviceId: 'mac' });
    expect(await bind(third, 'other mac', T0 + 3)).toMatchObject({ kind: 'bound', ended: [b] });
    expect(await endEnrolment(database, 'other mac', 'checked_out', T0 + 4)).toMatchObject({ seKeySha256: b });
    expect(await enrolmentOfKey(database, b)).toBeNull();
    expect(await activateDevice(database, 'other mac')).toBeNull();
  });

  it('match an answer with its command once, in time, and for its device only', async () => {
    const token = await offered('a'.repeat(64));
    const binding = await bind(token, 'mac');
    const enrolmentId = binding.kind === 'bound' ? binding.enrolment.id : '';
    const command = { kind: 'security_info' as const, sentAt: T0, expiresAt: T0 + 1000, endedAt: null, outcome: null, enrolmentId };
    await recordCommand(database, { uuid: 'one', ...command });
    await recordCommand(database, { uuid: 'two', ...command, sentAt: T0 + 1 });
    const match = (uuid: string, now = T0, id = enrolmentId) => matchCommand(database, { uuid, enrolmentId: id, now });
    expect(await match('none')).toEqual({ kind: 'unknown_command' });
    expect(await match('one', T0, 'another enrolment')).toEqual({ kind: 'command_of_other_device' });
    const matches = await Promise.all([match('one'), match('one')]);
    expect(matches.map(({ kind }) => kind).sort()).toEqual(['already_answered', 'matched']);
    expect(await match('two', T0 + 1000)).toEqual({ kind: 'answered_too_late' });
    await endCommand(database, 'one', 'taken', T0 + 5);
    expect((await commandHistory(database, enrolmentId)).map(({ uuid, outcome }) => [uuid, outcome])).toEqual([
      ['two', null],
      ['one', 'taken'],
    ]);
    for (let i = 0; i < 40; i++) await recordCommand(database, { uuid: `more ${i}`, ...command, sentAt: T0 + 10 + i });
    expect(await commandHistory(database, enrolmentId)).toHaveLength(16);
  });

  it('store one nonce per key and week, with concurrent writers too', async () => {
    const kept = await Promise.all(['r1', 'r2'].map((random) => storeNonce(database, 'k', { epoch: 2900, random }, T0)));
    expect(kept[0]).toEqual(kept[1]);
    await storeNonce(database, 'k', { epoch: 2901, random: 'r3' }, T0);
    expect((await noncesOfKey(database, 'k', 5)).map(({ epoch }) => epoch)).toEqual([2901, 2900]);
    expect(await noncesOfKey(database, 'other', 5)).toEqual([]);
  });

  it('store the newest evidence of each kind', async () => {
    const binding = await bind(await offered('a'.repeat(64)), 'mac');
    const enrolmentId = binding.kind === 'bound' ? binding.enrolment.id : '';
    for (const payload of ['old', 'new']) {
      await storeEvidence(database, 'a', { kind: 'attestation', enrolmentId, payload, receivedAt: T0 });
      await storeEvidence(database, 'a', { kind: 'security_info', enrolmentId, payload: `${payload} info`, receivedAt: T0 + 1 });
    }
    expect((await evidenceOfKey(database, 'a')).map(({ payload }) => payload).sort()).toEqual(['new', 'new info']);
  });
});
