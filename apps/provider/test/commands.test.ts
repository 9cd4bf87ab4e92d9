/** The command table: what is typed finds its command, and every command can be listed and explained. */
import { describe, expect, it } from 'vitest';
import type { Command } from '../src/commands/command.js';
import { COMMANDS, findCommand, overview, unknownCommand, usageOf } from '../src/commands/commands.js';

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

  it('puts what it does not know next to its nearest neighbour', () => {
    expect(unknownCommand(['stauts', '--json'], table)).toBe(
      'There is no command "stauts" (did you mean status?). `inference-provider --help` lists them.\n',
    );
    expect(unknownCommand(['models', 'pul', 'x'], table.slice(1))).toContain('"models pul" (did you mean models pull?)');
    expect(unknownCommand(['models', 'frobnicate'], table.slice(1))).toContain('"models frobnicate". It is one of: models pull.');
    expect(unknownCommand(['models'], table.slice(1))).toBe(
      'There is no command "models". It is one of: models pull. `inference-provider --help` lists them.\n',
    );
    expect(unknownCommand(['zebra'], table)).toBe('There is no command "zebra". `inference-provider --help` lists them.\n');
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
