/** Commands of an owner to providers of this and of another coordinator, with answers, refusals and limits. */
import { randomUUID } from 'node:crypto';
import type { ConsoleStoredCommand } from '@inference/formats';
import type { MachineSettings } from '@inference/protocol';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { databaseTime } from '../../src/database/connection/database-clock.js';
import { addMachineToken, hashMachineToken, newMachineToken } from '../../src/database/providers/machine-token-repository.js';
import { MAX_COMMANDS, OwnerCommandRepository } from '../../src/database/providers/owner-command-repository.js';
import { startTwoCoordinators, type TwoCoordinators } from '../support/cluster-harness.js';
import { Browser } from '../support/console-client.js';
import { MODEL, until } from '../support/harness.js';
import type { ScriptedProvider } from '../support/scripted-provider.js';

let cluster: TwoCoordinators;
let owner: Browser;
let accountId: string;
/** Provider connected to the far coordinator. The console uses the near one. */
let machine: ScriptedProvider;
/** Agent without remote control, connected to the near coordinator. */
let old: ScriptedProvider;

const SETTINGS: MachineSettings = {
  remote_control: true,
  pause: null,
  schedule: { windows: '', time_zone: 'Europe/Berlin' },
  models: [{ id: MODEL, served: true, bytes: 1000 }],
  models_fixed: false,
};

async function link(provider: ScriptedProvider): Promise<void> {
  const token = newMachineToken();
  await addMachineToken(cluster.near.app.database, { hash: hashMachineToken(token), accountId, machineName: 'Mac', now: Date.now() });
  provider.send({ type: 'link', token });
  await provider.next('linked');
}

beforeAll(async () => {
  cluster = await startTwoCoordinators();
  owner = new Browser(cluster.near.url);
  await owner.signUp('ada@example.com');
  accountId = ((await (await owner.get('/console/v1/me')).json()) as { id: string }).id;
  machine = await cluster.far.provider({ register: (register) => ({ ...register, remote_control: { versions: [1], allowed: true } }) });
  old = await cluster.near.provider();
  await Promise.all([link(machine), link(old)]);
  machine.send({ type: 'machine_settings', settings: SETTINGS });
  await until(() => cluster.near.app.cluster.servingAtPeers(MODEL) === 1);
});
afterAll(() => cluster.close());

async function command(action: object, { to = machine, as = owner, id = randomUUID() as string } = {}) {
  const response = await as.send('POST', `/console/v1/machines/${to.providerId}/commands`, { command_id: id, action });
  return {
    status: response.status,
    body: (await response.json()) as Record<string, unknown> & { error?: { code: string; param: string } },
  };
}

/** Answers commands to the provider while `work` runs. */
async function answering<T>(refusal: string | null, pause: MachineSettings['pause'], work: () => Promise<T>): Promise<T> {
  const answer = (data: Buffer, isBinary: boolean): void => {
    const message = isBinary ? null : (JSON.parse(String(data)) as { type: string; command_id: string });
    if (message?.type !== 'owner_command') return;
    machine.send({ type: 'owner_command_result', command_id: message.command_id, refusal, settings: { ...SETTINGS, pause } });
  };
  machine.socket.on('message', answer);
  try {
    return await work();
  } finally {
    machine.socket.off('message', answer);
  }
}

describe('a machine at another coordinator', () => {
  it('shows its settings', async () => {
    const control = async () =>
      ((await (await owner.get(`/console/v1/machines/${machine.providerId}`)).json()) as { control: unknown }).control;
    await until(async () => JSON.stringify(await control()) === JSON.stringify({ supported: true, allowed: true, settings: SETTINGS }));
  });

  it('executes a command and answers with the resulting settings', async () => {
    const pause = { by: 'console', until: null } as const;
    const id = randomUUID();
    const answer = await answering(null, pause, () => command({ kind: 'pause', until: null }, { id }));
    expect(answer).toEqual({ status: 200, body: { command_id: id, outcome: 'done', refusal: null, settings: { ...SETTINGS, pause } } });
    expect(machine.received.findLast(({ type }) => type === 'owner_command')).toMatchObject({
      command_id: id,
      action: { kind: 'pause', until: null },
    });
  });

  it.each([
    ['paused_on_machine', 'paused_on_machine'],
    ['a_code_of_the_future', 'other'],
  ])('refuses with %s', async (code, refusal) => {
    const { status, body } = await answering(code, { by: 'machine', until: null }, () => command({ kind: 'resume' }));
    expect([status, body.outcome, body.refusal]).toEqual([200, 'refused', refusal]);
  });
});

describe('the log of commands', () => {
  const read = async (query = '', as = owner) => {
    const response = await as.get(`/console/v1/machines/${machine.providerId}/commands${query}`);
    return { status: response.status, body: (await response.json()) as { data: ConsoleStoredCommand[]; next_cursor: string | null } };
  };

  it('names who sent what, and the outcome, newest first', async () => {
    const { data } = (await read()).body;
    expect(data.map(({ action, outcome, refusal }) => [action, outcome, refusal])).toEqual([
      [{ kind: 'resume' }, 'refused', 'other'],
      [{ kind: 'resume' }, 'refused', 'paused_on_machine'],
      [{ kind: 'pause', until: null }, 'done', null],
    ]);
    expect(data.map(({ actor }) => actor?.email)).toEqual(Array(3).fill('ada@example.com'));
    const first = (await read('?limit=2')).body;
    const second = (await read(`?limit=2&cursor=${first.next_cursor}`)).body;
    expect([...first.data, ...second.data]).toEqual(data);
    expect(second.next_cursor).toBeNull();
  });

  it('is bounded per account, and shows nothing to others', async () => {
    const { database } = cluster.near.app;
    const { providerId } = machine;
    const rows = Array.from({ length: MAX_COMMANDS }, (_, index) => ({
      id: `old-${index}`,
      account_id: 'another',
      provider_id: providerId,
      actor_id: 'another',
      at: index,
      action: '{"kind":"of another version"}',
      outcome: null,
      refusal: null,
    }));
    for (let start = 0; start < rows.length; start += 500) {
      await database
        .insertInto('owner_commands')
        .values(rows.slice(start, start + 500))
        .execute();
    }
    const log = new OwnerCommandRepository({ database, now: () => MAX_COMMANDS });
    await log.add({ accountId: 'another', providerId, actorId: 'another', action: { kind: 'resume' } });
    const stored = await log.list('another', providerId, 2 * MAX_COMMANDS, null);
    expect(stored).toHaveLength(MAX_COMMANDS);
    expect(stored[0]).toMatchObject({ action: { kind: 'resume' }, outcome: null, actor: null });
    expect(stored.at(-1)).toMatchObject({ id: 'old-1', action: null });
    expect((await read()).body.data).toHaveLength(3);
    const stranger = new Browser(cluster.near.url);
    await stranger.signUp('mallory@example.com');
    expect((await read('', stranger)).status).toBe(404);
  });
});

describe('a command', () => {
  it('does not reach an agent without remote control', async () => {
    expect(await command({ kind: 'resume' }, { to: old })).toMatchObject({ status: 409, body: { error: { code: 'machine_unsupported' } } });
    expect(old.received.some(({ type }) => type === 'owner_command')).toBe(false);
    const view = await (await owner.get(`/console/v1/machines/${old.providerId}`)).json();
    expect(view).toMatchObject({ control: { supported: false, allowed: false, settings: null } });
  });

  it('is not sent for another account, or without a valid action', async () => {
    const stranger = new Browser(cluster.near.url);
    await stranger.signUp('eve@example.com');
    expect((await command({ kind: 'resume' }, { as: stranger })).status).toBe(404);
    const before = machine.received.length;
    for (const action of [{ kind: 'run' }, { kind: 'resume', shell: 'id' }, { kind: 'set_model', model: '../x', served: true }]) {
      const { status, body } = await command(action);
      expect([status, body.error?.param]).toEqual([400, expect.stringContaining('action')]);
    }
    expect((await command({ kind: 'resume' }, { id: 'nonsense' })).body.error?.param).toBe('command_id');
    expect(machine.received.slice(before).some(({ type }) => type === 'owner_command')).toBe(false);
  });

  it('is limited per machine, and is not queued once the machine has left', async () => {
    machine.close();
    await until(() => cluster.far.app.providers.snapshot(machine.providerId) === null);
    expect(await command({ kind: 'resume' })).toMatchObject({ status: 409, body: { error: { code: 'machine_offline' } } });
    const { database } = cluster.near.app;
    // Renews the windows of 60 s, because a slow machine may take longer.
    const commandInWindow = async () => {
      await database
        .updateTable('attempt_counts')
        .set({ expires_at: sql<number>`${databaseTime(database)} + 60000` })
        .execute();
      return command({ kind: 'resume' });
    };
    await until(async () => (await commandInWindow()).status === 429);
    // More than the limit of the account: refused commands do not count against the other machines.
    for (let index = 0; index < 60; index++) expect((await commandInWindow()).status).toBe(429);
    expect((await command({ kind: 'resume' }, { to: old })).status).toBe(409);
  });
});
