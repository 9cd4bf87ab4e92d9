/** Command table: lookup, overview and help of every command. */
import { describe, expect, it } from 'vitest';
import type { Command } from '../../src/cli/command.js';
import { interpret } from '../../src/cli/command-line.js';
import { COMMANDS, findCommand, overview, unknownCommand, usageOf } from '../../src/cli/command-table.js';

const command = (name: string): Command => ({ name, summary: `Does ${name}.`, usage: `${name} [--json]`, run: async () => 0 });

describe('the command table', () => {
  const table = [command('models'), command('models pull'), command('status')];

  it('takes the longest matching name, and passes the rest as arguments', () => {
    expect(findCommand(['models', 'pull', 'pico'], table)).toEqual({ command: table[1], args: ['pico'] });
    expect(findCommand(['models', 'list'], table)).toEqual({ command: table[0], args: ['list'] });
    expect(findCommand(['status', '--json'], table)?.args).toEqual(['--json']);
  });

  it('finds nothing where no name fits', () => {
    for (const typed of [[], ['pull'], ['toString'], ['__proto__'], ['stat']]) expect(findCommand(typed, table)).toBeNull();
  });

  it('suggests the nearest command for unknown words', () => {
    expect(unknownCommand(['stauts', '--json'], table)).toBe(
      'There is no command "stauts" (did you mean status?). For a list of commands, run: inference-provider --help\n',
    );
    expect(unknownCommand(['models', 'pul', 'x'], table.slice(1))).toContain('"models pul" (did you mean models pull?)');
    expect(unknownCommand(['models', 'frobnicate'], table.slice(1))).toContain('"models frobnicate". Commands: models pull.');
    expect(unknownCommand(['models'], table.slice(1))).toBe(
      'There is no command "models". Commands: models pull. For a list of commands, run: inference-provider --help\n',
    );
    expect(unknownCommand(['zebra'], table)).toBe('There is no command "zebra". For a list of commands, run: inference-provider --help\n');
  });

  describe('where only a group is named', () => {
    const name = (typed: string) => {
      const line = interpret(typed.split(' '));
      return line.kind === 'run' ? [line.command.name, ...line.args] : line.kind;
    };

    it('lists the commands of a group without a command of its own', () => {
      expect(interpret(['models'])).toEqual(interpret(['help', 'models']));
      expect(interpret(['models', '--json', '--data-dir', 'x'])).toEqual(interpret(['models']));
      expect(name('models list --json')).toEqual(['models list', '--json']);
      expect(name('models pull pico')).toEqual(['models pull', 'pico']);
      expect(name('schedule')).toEqual(['schedule']);
      expect(name('logs --lines 5')).toEqual(['logs', '--lines', '5']);
    });

    it('explains the group, however help is asked for', () => {
      for (const group of ['models', 'schedule']) {
        const members = COMMANDS.filter((each) => each.name.startsWith(`${group} `));
        expect(members.length).toBeGreaterThan(1);
        for (const typed of [
          [group, '--help'],
          [group, '-h'],
          ['help', group],
          ['--help', group],
        ]) {
          const line = interpret(typed);
          for (const { name, summary } of members) {
            expect(line).toMatchObject({ kind: 'help', text: expect.stringMatching(new RegExp(`${name} +${summary.slice(0, 10)}`)) });
          }
        }
      }
    });

    it('shows help per command, and suggests near names', () => {
      for (const entry of COMMANDS) {
        expect(interpret(['help', ...entry.name.split(' ')]).kind).toBe('help');
        expect(interpret([...entry.name.split(' '), '--help']).kind).toBe('help');
      }
      expect(interpret(['help'])).toEqual({ kind: 'help', text: overview() });
      expect(interpret([])).toEqual({ kind: 'wrong', text: overview() });
      for (const [typed, text] of [
        ['model', 'There is no command "model" (did you mean models?).'],
        ['modles lst', 'There is no command "modles" (did you mean models list?).'],
        ['models lits', 'There is no command "models lits" (did you mean models list?).'],
        [
          'models foo',
          'There is no command "models foo". Commands: models recommend, models search, models pull, models list, models use, models rm.',
        ],
        ['schedule claer', 'There is no command "schedule claer" (did you mean schedule clear?).'],
        ['schedule mon-fri', 'There is no command "schedule mon-fri". Commands: schedule, schedule set, schedule clear.'],
        ['help modles', 'There is no command "modles" (did you mean models?).'],
        ['help models foo', 'There is no command "models foo". Commands:'],
        ['help schedule foo', 'There is no command "schedule foo". Commands:'],
      ] as const) {
        expect(interpret(typed.split(' '))).toMatchObject({ kind: 'wrong', text: expect.stringContaining(text) });
      }
    });
  });

  it('has a unique name, one summary line, and a usage that begins with the name', () => {
    expect(new Set(COMMANDS.map(({ name }) => name)).size).toBe(COMMANDS.length);
    for (const { name, summary, usage } of COMMANDS) {
      expect(usage === name || usage.startsWith(`${name} `)).toBe(true);
      expect(summary).toMatch(/^\S[^\n]{0,70}\.$/);
      expect(overview()).toContain(`  ${name} `);
    }
    for (const entry of COMMANDS) {
      const [line, ...details] = entry.usage.split('\n\n');
      expect(usageOf(entry)).toBe(`Usage: inference-provider ${[line, entry.summary, ...details].join('\n\n')}\n`);
    }
  });
});
