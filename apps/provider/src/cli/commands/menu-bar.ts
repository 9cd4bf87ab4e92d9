/** `menu-bar on|off`: shows the provider in the menu bar of macOS, or removes the item. */
import { hideMenuBar, MenuBarError, menuBarHost, showMenuBar } from '../../service/menu-bar.js';
import type { Command } from '../command.js';
import { EXIT } from '../exit-codes.js';
import { ownerOptions, UsageError } from '../input/owner-options.js';
import { print } from '../output/terminal.js';

export const menuBarOnCommand: Command = {
  name: 'menu-bar on',
  summary: 'Shows the provider in the menu bar, now and after each login.',
  usage: `menu-bar on [--data-dir DIR]

The item shows the status and today's earnings, pauses and resumes the provider, and opens the console.
It is built on this Mac unless the package contains it. After an update of the agent, run this command again.
Exit codes: 0 success, 1 the item cannot be built or started.`,
  run: (args) => change(args, showMenuBar, 'The provider is shown in the menu bar. To remove it: inference-provider menu-bar off'),
};

export const menuBarOffCommand: Command = {
  name: 'menu-bar off',
  summary: 'Removes the provider from the menu bar.',
  usage: 'menu-bar off [--data-dir DIR]\n\nThe provider itself continues to run.',
  run: (args) => change(args, hideMenuBar, 'The menu bar item was removed. The provider itself was not changed.'),
};

async function change(args: readonly string[], action: typeof showMenuBar, done: string): Promise<number> {
  const { dataDir, json } = ownerOptions(args);
  if (json) throw new UsageError('menu-bar has no JSON output.');
  try {
    await action(dataDir, menuBarHost());
  } catch (error) {
    if (!(error instanceof MenuBarError)) throw error;
    process.stderr.write(`${error.message.charAt(0).toUpperCase()}${error.message.slice(1)}.\n`);
    return EXIT.needsOwner;
  }
  await print([done]);
  return EXIT.fine;
}
