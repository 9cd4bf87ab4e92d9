/** Staged rollout of agent releases: offers by stage, halt of a bad version, and agreement of two coordinators. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { AdminRollout, AdminRolloutList, RolloutPolicy } from '@inference/formats';
import { parseRolloutHeader, type Release, type RolloutNotice } from '@inference/protocol';
import { providerIdOf } from '@inference/protocol/crypto';
import { afterEach, describe, expect, it } from 'vitest';
import { EnclaveKey } from '../../../../../test/support/enclave-key.js';
import { temporaryDirectory } from '../../../../../test/support/temporary-directory.js';
import { rolloutPosition } from '../../../src/releases/offer-policy.js';
import { startTwoCoordinators } from '../../support/cluster-harness.js';
import { type Harness, type HarnessOptions, startCoordinator } from '../../support/harness.js';
import type { ScriptedProvider } from '../../support/scripted-provider.js';

const MINUTE = 60_000;
/** Offers the version to half of the machines, then to all. Any share of the capacity may update at once. */
const POLICY: RolloutPolicy = {
  mode: 'staged',
  stages: [
    { percent: 50, soak_minutes: 1, min_machines: 1 },
    { percent: 100, soak_minutes: 1, min_machines: 0 },
  ],
  max_updating_network_percent: 100,
  max_updating_cohort_percent: 100,
  owners_may_update_early: false,
  canary_accounts: [],
};
const VERSION = '2.0.0';
const release = (version: string): Release => ({
  version,
  platform: 'darwin-arm64',
  url: `https://releases.example/${version}.tgz`,
  sha256: 'a'.repeat(64),
  size: 5,
  node: '20.19.0',
  notes: '',
  signature: 'c2ln',
});

type M = ScriptedProvider;

interface Network {
  /** Coordinator that agents ask for releases over HTTP. */
  readonly near: Harness;
  /** Coordinator that holds the agents' WebSockets. */
  readonly far: Harness;
  close(): Promise<void>;
}

async function startOne(options: HarnessOptions): Promise<Network> {
  const harness = await startCoordinator(options);
  return { near: harness, far: harness, close: () => harness.close() };
}

let close = async (): Promise<void> => {};
afterEach(() => close());

describe.each([
  ['one coordinator on SQLite', startOne],
  ['two coordinators on PostgreSQL', startTwoCoordinators],
] as const)('rollouts of %s', (_name, start) => {
  it('reach machines by stage, halt a bad version, and continue after an operator resumes', async () => {
    const file = join(temporaryDirectory('rollouts'), 'releases.json');
    const put = (...versions: string[]): void => writeFileSync(file, JSON.stringify({ releases: versions.map(release) }));
    let skippedMs = 0;
    put('1.0.0');
    const network: Network = await start({
      config: { agentReleases: file },
      now: () => Date.now() + skippedMs,
      refreshMs: 20,
      // The test calls `checkRollouts` itself.
      rolloutCheckMs: 3_600_000,
      providerTimings: { challengeIntervalMs: 3_600_000 },
    });
    close = () => network.close();
    const { near, far } = network;
    const admin = async (method: string, path: string, body?: unknown, harness = near): Promise<{ status: number; body: unknown }> => {
      const headers = { authorization: `Bearer ${harness.adminKey}`, 'content-type': 'application/json' };
      const response = await fetch(harness.url + path, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
      const text = await response.text();
      if (text === '') throw new Error(`${method} ${path}: ${response.status}`);
      return { status: response.status, body: JSON.parse(text) as unknown };
    };
    const rollout = async (harness = near): Promise<AdminRollout | undefined> => {
      const list = (await admin('GET', '/admin/v1/rollouts', undefined, harness)).body as AdminRolloutList;
      return list.rollouts.find(({ version }) => version === VERSION);
    };
    const ask = async (
      machine: ScriptedProvider | null,
      version = 'latest',
      harness = near,
      query = '',
    ): Promise<[string | null, RolloutNotice | null]> => {
      const token = machine === null ? null : (await machine.next('registered')).token;
      const headers: Record<string, string> = token === null ? {} : { authorization: `Bearer ${token}` };
      const response = await fetch(`${harness.url}/v1/agent/releases/${version}?platform=darwin-arm64${query}`, { headers });
      const body = (await response.json()) as Partial<Release>;
      return [response.status === 200 ? (body.version ?? '') : null, parseRolloutHeader(response.headers.get('inference-rollout'))];
    };

    const keys = [...keysByStage(5, true), ...keysByStage(5, false)];
    const connect = (enclave: EnclaveKey, index: number) => far.provider({ enclave, agentVersion: '1.0.0', serial: `SERIAL${index}` });
    const first = await connect(keys[0] as EnclaveKey, 0);
    expect(await ask(first)).toEqual(['1.0.0', null]);

    expect((await admin('PUT', '/admin/v1/rollout-policy', { ...POLICY, stages: [{ ...POLICY.stages[0] }] })).body).toMatchObject({
      error: { param: 'stages[0].percent' },
    });
    expect((await admin('PUT', '/admin/v1/rollout-policy', POLICY)).status).toBe(200);
    await far.app.checkRollouts();
    put('1.0.0', VERSION);
    // Old agents send no token. Only one machine has this address, so the coordinator recognises it.
    expect(await ask(null)).toEqual([VERSION, null]);
    // A failure is recorded only with a token, because others can send requests from the same address.
    expect(await ask(null, 'latest', near, `&failed=${VERSION}`)).toEqual([VERSION, null]);
    const [second, third, fourth, fifth, lateOne] = (await Promise.all(
      keys.slice(1).map((enclave, index) => connect(enclave, index + 1)),
    )) as [M, M, M, M, M];
    // After this, both coordinators know the capacity of all machines.
    await far.app.checkRollouts();
    await near.app.checkRollouts();
    // Machines get the version by stage, and the same answer again. A request with `check=yes` records no offer.
    expect(await ask(fourth, 'latest', near, '&check=yes')).toEqual([VERSION, null]);
    await far.app.checkRollouts();
    await near.until(async () => (await rollout())?.machines.offered === 1);
    const later = { version: VERSION, reason: 'later_stage', mayUpdateNow: false };
    for (const machine of [first, second, first]) expect(await ask(machine)).toEqual([VERSION, null]);
    for (const machine of [lateOne, lateOne]) expect(await ask(machine)).toEqual(['1.0.0', later]);
    expect(await ask(lateOne, VERSION)).toEqual([null, later]);
    expect(await ask(lateOne, 'latest', near, '&channel=canary')).toEqual([VERSION, null]);
    expect((await ask(first, '1.0.0'))[0]).toBe('1.0.0');

    // A machine that already runs the version is offered nothing newer.
    third.close();
    await third.closed;
    const updated = await far.provider({ enclave: third.enclave, agentVersion: VERSION, serial: 'SERIAL2' });
    expect(await ask(updated)).toEqual([VERSION, null]);

    // One machine rolls back, and three do not reconnect after their update.
    expect(await ask(fourth)).toEqual([VERSION, null]);
    expect(await ask(fourth, 'latest', near, `&failed=${VERSION}`)).toEqual(['1.0.0', { ...later, reason: 'failed_here' }]);
    expect(await ask(fifth)).toEqual([VERSION, null]);
    for (const machine of [first, second, fifth]) {
      machine.close();
      await far.until(() => far.app.providers.snapshot(machine.providerId) === null);
    }
    await far.app.checkRollouts();
    expect(await rollout(far)).toMatchObject({ state: 'active', machines: { missing: 0 } });
    skippedMs += 15 * MINUTE;
    await far.app.checkRollouts();
    const halted = { state: 'halted', changed_by: 'coordinator', reason: expect.stringContaining('did not come back') };
    for (const harness of [near, far]) {
      await harness.until(async () => (await rollout(harness))?.state === 'halted');
      expect(await rollout(harness)).toMatchObject(halted);
      expect(await ask(null, 'latest', harness)).toEqual(['1.0.0', { ...later, reason: 'halted' }]);
      expect((await ask(lateOne, VERSION, harness))[0]).toBeNull();
    }
    expect(far.log.some((line) => line.includes('agent release halted'))).toBe(true);
    expect((await admin('POST', `/admin/v1/rollouts/${VERSION}/advance`)).body).toMatchObject({
      error: { code: 'conflict', message: `Version ${VERSION} is halted; only an active rollout has a next stage.` },
    });
    expect((await admin('POST', '/admin/v1/rollouts/9.9.9/pause')).status).toBe(404);

    // After a resume, failures from before the halt do not halt the rollout again. Then the operator completes it.
    skippedMs += MINUTE;
    expect((await admin('POST', `/admin/v1/rollouts/${VERSION}/resume`, {})).body).toMatchObject({ state: 'active', stage: 1 });
    await far.app.checkRollouts();
    expect(await rollout(far)).toMatchObject({ state: 'active', comparisons: expect.any(Array) });
    expect((await admin('POST', `/admin/v1/rollouts/${VERSION}/complete`, {})).status).toBe(200);
    await far.app.checkRollouts();
    for (const harness of [near, far]) {
      await harness.until(async () => (await rollout(harness))?.state === 'complete');
      expect(await ask(null, 'latest', harness)).toEqual([VERSION, null]);
    }
    const actions = (await admin('GET', `/admin/v1/actions?subject=${VERSION}`)).body as { data: { outcome: string }[] };
    expect(actions.data.map(({ outcome }) => outcome)).toEqual(['done', 'done', 'conflict']);
  });
});

/** Enclave keys of machines inside or outside the first stage. */
function keysByStage(count: number, isEarly: boolean): EnclaveKey[] {
  const keys: EnclaveKey[] = [];
  while (keys.length < count) {
    const key = new EnclaveKey();
    if (rolloutPosition(providerIdOf(key.publicKey), VERSION) < 0.5 === isEarly) keys.push(key);
  }
  return keys;
}
