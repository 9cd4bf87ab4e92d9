import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { readClusterSettings } from '../../src/cluster/settings.js';
import { startCoordinator } from '../support/harness.js';

const directory = mkdtempSync(join(tmpdir(), 'cluster-settings-'));
afterAll(() => rmSync(directory, { recursive: true }));

const SEED = `SU${'A'.repeat(56)}`;
const CLUSTER = { NATS_URL: 'nats://one:4222', DATABASE_URL: 'postgres://db/x' };

function file(name: string, content: string): string {
  const path = join(directory, name);
  writeFileSync(path, content);
  return path;
}

it('is no cluster without servers', () => {
  expect(readClusterSettings({})).toBeNull();
  expect(readClusterSettings({ NATS_URL: ' , ', COORDINATOR_ID: 'a' })).toBeNull();
});

it('reads servers, name, seed and certificate authority', () => {
  const env = {
    NATS_URL: 'tls://one:4222, tls://two:4222,',
    DATABASE_URL: 'postgres://db/x',
    COORDINATOR_ID: 'first',
    NATS_NKEY_FILE: file('seed', `${SEED}\n`),
    NATS_CA_FILE: '/etc/ca.pem',
  };
  expect(readClusterSettings(env)).toEqual({
    id: 'first',
    servers: ['tls://one:4222', 'tls://two:4222'],
    nkeySeed: SEED,
    certificateAuthorityFile: '/etc/ca.pem',
  });
});

it('has a random name and no credentials where empty', () => {
  const settings = readClusterSettings({ ...CLUSTER, COORDINATOR_ID: '', NATS_NKEY_FILE: '', NATS_CA_FILE: '' });
  expect(settings).toMatchObject({ nkeySeed: null, certificateAuthorityFile: null });
  expect(settings?.id).toMatch(/^[0-9a-f]{16}$/);
  expect(settings?.id).not.toBe(readClusterSettings(CLUSTER)?.id);
});

it.each([
  [{ NATS_URL: 'http://one:secret@host' }, /^NATS_URL must be addresses (?!.*secret)/],
  [{ NATS_URL: 'nats://one:4222,tls://two:port' }, /^NATS_URL must be/],
  [{ DATABASE_URL: '' }, /^NATS_URL needs PostgreSQL/],
  [{ COORDINATOR_ID: 'Not_A_Name' }, /^COORDINATOR_ID must be 1 to 32/],
  [{ NATS_NKEY_FILE: join(directory, 'missing') }, /^NATS_NKEY_FILE cannot be read: ENOENT/],
  [{ NATS_NKEY_FILE: file('no-seed', 'UABC') }, /^NATS_NKEY_FILE must contain the seed/],
])('refuses %j', (env, message) => {
  expect(() => readClusterSettings({ ...CLUSTER, ...env })).toThrow(message);
});

it('names an unreadable certificate authority at the start', async () => {
  const cluster = { id: 'a', servers: ['tls://127.0.0.1:1'], nkeySeed: null, certificateAuthorityFile: join(directory, 'missing') };
  await expect(startCoordinator({ config: { cluster } })).rejects.toThrow(/^NATS_CA_FILE cannot be read: ENOENT/);
});
