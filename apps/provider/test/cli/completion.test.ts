/** `completion`: the table of words, and the scripts in the shells that are installed here. */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { COMMANDS } from '../../src/cli/command-table.js';
import { completionTable } from '../../src/cli/completion/completion-table.js';
import { MAIN } from '../support/owner-command.js';

const has = (shell: string): boolean => spawnSync(shell, ['--version']).status === 0;

let folder: string;
const scriptOf = (shell: string): string => join(folder, `completion.${shell}`);
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'completion-'));
  for (const shell of ['bash', 'zsh', 'fish']) writeFileSync(scriptOf(shell), execFileSync(process.execPath, [MAIN, 'completion', shell]));
  writeFileSync(join(folder, 'weights.gguf'), '');
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('the table', () => {
  const table = completionTable(COMMANDS);
  const commandOf = (name: string) => table.find((each) => each.name === name);

  it('has every command with the options of its synopsis', () => {
    expect(table.map(({ name }) => name)).toEqual(COMMANDS.map(({ name }) => name));
    for (const { options } of table) expect(new Set(options.map(({ name }) => name)).size).toBe(options.length);
    expect(commandOf('models use')?.options).toEqual([
      { name: '--data-dir', value: 'path', choices: [] },
      { name: '--keep', value: 'choices', choices: ['always', 'on_demand'] },
      { name: '--off', value: 'none', choices: [] },
      { name: '--json', value: 'none', choices: [] },
      { name: '--help', value: 'none', choices: [] },
    ]);
    expect(commandOf('setup')?.options.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['--link', '--no-link', '--no-enrol', '--yes']),
    );
    expect(commandOf('completion')?.choices).toEqual(['bash', 'zsh', 'fish']);
    expect(commandOf('remote-control')?.choices).toEqual(['on', 'off']);
    expect(commandOf('notifications')?.choices).toEqual(['on', 'off', 'test']);
    expect([commandOf('models pull')?.takesFile, commandOf('models use')?.takesFile]).toEqual([true, false]);
  });

  it('names only options that the commands accept', async () => {
    for (const { name, options } of table) {
      const flags = options.filter(({ value, name: option }) => value === 'none' && option !== '--help').map(({ name: option }) => option);
      // An unknown option ends every command before anything else happens.
      const run = COMMANDS.find((command) => command.name === name)?.run([...flags, '--surely-unknown']);
      await expect(run).rejects.toThrow('There is no option --surely-unknown');
    }
  });
});

describe.runIf(has('bash'))('bash', () => {
  const complete = (...words: string[]): string[] => {
    const program = `source "$0"; COMP_WORDS=(inference-provider "$@"); COMP_CWORD=$(($#)); _inference_provider; printf '%s\\n' "\${COMPREPLY[@]}"`;
    return execFileSync('bash', ['--norc', '-c', program, scriptOf('bash'), ...words], { encoding: 'utf8', cwd: folder })
      .split('\n')
      .filter((word) => word !== '');
  };

  it('completes commands, members, options and values', () => {
    expect(complete('sta')).toEqual(['start', 'status']);
    expect(complete('')).toEqual(expect.arrayContaining(['setup', 'models', 'completion', '--version']));
    expect(complete('models', '')).toEqual(['recommend', 'search', 'pull', 'list', 'use', 'rm']);
    expect(complete('models', 'r')).toEqual(['recommend', 'rm']);
    expect(complete('models', 'use', 'mine', '--k')).toEqual(['--keep']);
    expect(complete('models', 'use', 'mine', '--keep', '')).toEqual(['always', 'on_demand']);
    expect(complete('status', '--w')).toEqual(['--watch']);
    expect(complete('schedule', '--j')).toEqual(['--json']);
    expect(complete('earnings', '--days', '')).toEqual([]);
    expect(complete('completion', '')).toEqual(['bash', 'zsh', 'fish']);
    expect(complete('models', 'pull', 'wei')).toEqual(['weights.gguf']);
    expect(complete('logs', '--data-dir', 'wei')).toEqual(['weights.gguf']);
  });
});

describe.runIf(has('zsh'))('zsh', () => {
  it('is valid and registers itself', () => {
    const program =
      'autoload -Uz compinit && compinit -u -D; source "$0"; print -r -- $_comps[inference-provider]; functions _inference_provider';
    const output = execFileSync('zsh', ['-f', '-c', program, scriptOf('zsh')], { encoding: 'utf8' });
    expect(output.split('\n')[0]).toBe('_inference_provider');
    expect(output).toContain('on_demand');
  });
});

describe.runIf(has('fish'))('fish', () => {
  const complete = (line: string): string[] =>
    execFileSync('fish', ['--no-config', '-c', `source ${scriptOf('fish')}; complete -C '${line}'`], { encoding: 'utf8', cwd: folder })
      .split('\n')
      .map((each) => each.split('\t')[0] ?? '')
      .filter((word) => word !== '');

  it('completes commands, members, options and values', () => {
    expect(complete('inference-provider sta')).toEqual(['start', 'status']);
    expect(complete('inference-provider models r').sort()).toEqual(['recommend', 'rm']);
    expect(complete('inference-provider models use mine --k')).toEqual(['--keep']);
    expect(complete('inference-provider models use mine --keep ')).toEqual(['always', 'on_demand']);
    expect(complete('inference-provider status --w')).toEqual(['--watch']);
    expect(complete('inference-provider completion ').sort()).toEqual(['bash', 'fish', 'zsh']);
  });
});
