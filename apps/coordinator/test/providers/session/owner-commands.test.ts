/** Owner commands of a session: repeated ids, late answers, and the end of the connection. In virtual time. */
import type { MachineSettings, OwnerCommand } from '@inference/protocol';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { OWNER_COMMAND_TIMEOUT_MS, OwnerCommands } from '../../../src/providers/session/owner-commands.js';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const settings: MachineSettings = {
  remote_control: false,
  pause: null,
  schedule: { windows: '', time_zone: 'UTC' },
  models: [],
  models_fixed: true,
};
const open = () => {
  const sent: OwnerCommand[] = [];
  const commands = new OwnerCommands({
    remoteControl: { versions: [1], allowed: true },
    send: (message) => void sent.push(message),
    now: () => 1000,
  });
  return { commands, sent };
};

it('times out after ten seconds, and takes the settings of a late answer', async () => {
  const { commands, sent } = open();
  const answer = commands.execute('a', { kind: 'resume' });
  expect(sent).toMatchObject([{ command_id: 'a', expires_at: 1000 + OWNER_COMMAND_TIMEOUT_MS }]);
  await vi.advanceTimersByTimeAsync(OWNER_COMMAND_TIMEOUT_MS);
  expect(await answer).toEqual({ outcome: 'timeout' });
  expect(commands.isAllowed).toBe(true);
  expect(commands.answered({ type: 'owner_command_result', command_id: 'a', refusal: null, settings })).toBe(false);
  expect([commands.settings, commands.isAllowed]).toEqual([settings, false]);
});

it('sends a repeated id once, bounds pending commands, and ends them with the connection', async () => {
  const { commands, sent } = open();
  const answers = ['a', 'a', 'b', 'c', 'd', 'e'].map((id) => commands.execute(id, { kind: 'resume' }));
  expect(sent.map(({ command_id }) => command_id)).toEqual(['a', 'b', 'c', 'd']);
  commands.answered({ type: 'owner_command_result', command_id: 'a', refusal: null, settings });
  commands.close();
  expect((await Promise.all(answers)).map(({ outcome }) => outcome)).toEqual([
    'done',
    'done',
    'disconnected',
    'disconnected',
    'disconnected',
    'busy',
  ]);
  expect(await commands.execute('f', { kind: 'resume' })).toEqual({ outcome: 'disconnected' });
});
