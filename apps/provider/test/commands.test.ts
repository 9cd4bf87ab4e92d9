/** The command table: what is typed finds its command, and every command can be listed and explained. */
import { describe, expect, it } from 'vitest';
import type { Command } from '../src/commands/command.js';
import { COMMANDS, findCommand, overview, usageOf } from '../src/commands/commands.js';

const command = (name: string): Command => ({ name, summary: `Does ${name}.`, usage: `${name} [--json]`, run: async () => 0 });

describe('the command table', () => {
  const table = [command('models'), command('models pull'), command('status')];

  it('takes the longest name that fits, and leaves the rest as arguments', () => {
    expect(findCommand(['models', 'pull', 'pico'], table)).toEqual({ command: table[1], args: ['pico'] });
    expect(findCommand(['models', 'list'], table)).toEqual({ command: table[0], args: ['list'] });
    expect(findCommand(['status', '--json'], table)?.args).toEqual(['--json']);
  });

  it('finds nothing where no name fits', () => {
    for (const typed of [[], ['pull'], ['toString'], ['__proto__'], ['stat']]) expect(findCommand(typed, table)).toBeNull();
  });

  it('has one name, one line and a usage that begins with the name for every command', () => {
    expect(new Set(COMMANDS.map(({ name }) => name)).size).toBe(COMMANDS.length);
    for (const { name, summary, usage } of COMMANDS) {
      expect(usage === name || usage.startsWith(`${name} `)).toBe(true);
      expect(summary).toMatch(/^\S[^\n]{0,70}\.$/);
      expect(overview()).toContain(`  ${name} `);
    }
    for (const entry of COMMANDS) expect(usageOf(entry)).toContain(entry.usage);
  });
});
