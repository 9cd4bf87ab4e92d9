/** `/v1/agent/releases`: agent releases from the operator's JSON file. */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DEFAULT_ROLLOUT_POLICY } from '@inference/formats';
import type { Release } from '@inference/protocol';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { temporaryDirectory } from '../../../../../test/support/temporary-directory.js';
import { type Harness, startHarness } from '../../support/harness.js';

const release = (version: string, platform: Release['platform'] = 'darwin-arm64'): Release => ({
  version,
  platform,
  url: `https://releases.example/${version}.tgz`,
  sha256: 'a'.repeat(64),
  size: 5,
  node: '20.19.0',
  notes: '',
  signature: 'c2ln',
});

let folder: string;
let file: string;
let harness: Harness;
beforeAll(() => {
  folder = temporaryDirectory('feed');
  file = join(folder, 'releases.json');
});
afterEach(() => harness.close());

const put = (...releases: unknown[]): void => writeFileSync(file, JSON.stringify({ releases }));
const ask = async (version: string, query = '?platform=darwin-arm64'): Promise<[number, unknown]> => {
  const response = await harness.get(`/v1/agent/releases/${version}${query}`, null);
  return [response.status, await response.json()];
};

describe('agent releases', () => {
  it('are empty without a release file', async () => {
    harness = await startHarness();
    expect((await ask('latest'))[0]).toBe(404);
  });

  it('are found by platform: the newest, or a given version', async () => {
    put(release('1.9.0'), release('1.10.0'), release('1.2.0'), release('2.0.0', 'linux-x64'));
    harness = await startHarness({ config: { agentReleases: file } });
    expect(await ask('latest')).toEqual([200, release('1.10.0')]);
    expect(await ask('1.2.0')).toEqual([200, release('1.2.0')]);
    expect(await ask('latest', '?platform=linux-x64')).toEqual([200, release('2.0.0', 'linux-x64')]);
    for (const [version, query] of [
      ['2.0.0', '?platform=darwin-arm64'],
      ['latest', '?platform=linux-arm64'],
    ] as const) {
      expect((await ask(version, query))[0]).toBe(404);
    }
    for (const [version, query] of [
      ['latest', ''],
      ['latest', '?platform=toaster'],
      ['1.2', '?platform=linux-x64'],
      ['1.2.0-x', '?platform=linux-x64'],
    ] as const) {
      expect((await ask(version, query))[0]).toBe(400);
    }
  });

  it('are reloaded when the file changes, and empty while the file is invalid', async () => {
    rmSync(file, { force: true });
    harness = await startHarness({ config: { agentReleases: file } });
    expect((await ask('latest'))[0]).toBe(404);
    put(release('1.0.0'));
    expect(await ask('latest')).toEqual([200, release('1.0.0')]);
    const policy = { ...DEFAULT_ROLLOUT_POLICY, mode: 'immediate' };
    const headers = { authorization: `Bearer ${harness.adminKey}` };
    const changed = await fetch(`${harness.url}/admin/v1/rollout-policy`, { method: 'PUT', headers, body: JSON.stringify(policy) });
    expect(changed.status).toBe(200);
    put(release('1.0.0'), release('1.1.0'));
    expect(await ask('latest')).toEqual([200, release('1.1.0')]);
    put({ ...release('1.2.0'), size: -1 });
    expect((await ask('latest'))[0]).toBe(404);
    expect((await ask('latest'))[0]).toBe(404);
    expect(harness.log.filter((line) => line.includes('the release file cannot be used') && line.includes('not a list'))).toHaveLength(1);
    writeFileSync(file, '{');
    expect((await ask('latest'))[0]).toBe(404);
    put(release('1.3.0'));
    expect(await ask('latest')).toEqual([200, release('1.3.0')]);
  });
});
