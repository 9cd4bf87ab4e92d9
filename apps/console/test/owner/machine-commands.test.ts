/** Idempotency ids of commands to a machine: a retry repeats the id, another choice gets a new one. */
import { describe, expect, it } from 'vitest';
import { CommandIds } from '../../src/pages/owner/machine-commands.js';

function ids(): CommandIds {
  let count = 0;
  return new CommandIds(() => `id-${++count}`);
}

describe('the id of a command', () => {
  it('stays at retries until the machine answers', () => {
    const commands = ids();
    expect([commands.idFor('pause hour'), commands.idFor('pause hour')]).toEqual(['id-1', 'id-1']);
    commands.answered('id-1');
    expect(commands.idFor('pause hour')).toBe('id-2');
  });

  it('changes with the choice', () => {
    const commands = ids();
    expect([commands.idFor('pause hour'), commands.idFor('pause day'), commands.idFor('pause hour')]).toEqual(['id-1', 'id-2', 'id-3']);
    // A late response to an earlier command does not complete the current one.
    commands.answered('id-1');
    expect(commands.idFor('pause hour')).toBe('id-3');
  });

  it('is random by default', () => {
    expect(new CommandIds().idFor('resume')).toMatch(/^[0-9a-f-]{36}$/);
    expect(new CommandIds().idFor('resume')).not.toBe(new CommandIds().idFor('resume'));
  });
});
