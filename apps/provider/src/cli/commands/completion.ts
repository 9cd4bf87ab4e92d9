/** `completion`: prints the completion script of a shell, generated from the command table. */
import type { Command } from '../command.js';
import { completionTable } from '../completion/completion-table.js';
import { completionScript, SHELLS } from '../completion/scripts.js';
import { EXIT } from '../exit-codes.js';
import { ownerOptions, UsageError } from '../input/owner-options.js';
import { print } from '../output/terminal.js';

export const completionCommand: Command = {
  name: 'completion',
  summary: 'Prints a completion script for your shell.',
  usage: `completion bash|zsh|fish

bash: add to ~/.bashrc: source <(inference-provider completion bash)
zsh:  add to ~/.zshrc:  source <(inference-provider completion zsh)
fish: inference-provider completion fish > ~/.config/fish/completions/inference-provider.fish`,
  run: completion,
};

async function completion(args: readonly string[]): Promise<number> {
  const { words } = ownerOptions(args, {}, { min: 1 });
  const shell = SHELLS.find((name) => name === words[0]);
  if (shell === undefined) throw new UsageError(`The shell must be one of ${SHELLS.join(', ')}.`);
  // Imported lazily, because the command table imports this command.
  const { COMMANDS } = await import('../command-table.js');
  await print([completionScript(shell, completionTable(COMMANDS)).trimEnd()]);
  return EXIT.fine;
}
