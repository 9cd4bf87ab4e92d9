/** `models rm`: removes a model from the store. A local file added in place is not deleted. Asks before removing a served model. */
import { parseArgs } from 'node:util';
import { dataDirOf } from '../../../config/data-dir.js';
import { byteSizeText } from '../../../models/byte-size-text.js';
import { StartupError } from '../../../startup-error.js';
import type { Command } from '../../command.js';
import { EXIT } from '../../exit-codes.js';
import { UsageError } from '../../input/owner-options.js';
import { confirm } from '../../input/prompt.js';
import { COMMON_OPTIONS, openStore, readArguments, withErrorText } from '../../models-command.js';
import { print } from '../../output/terminal.js';
import { reloadModels } from '../../reload-models.js';

const USAGE = 'models rm ID [--yes] [--data-dir DIR] [--json]';

export const modelsRemoveCommand: Command = {
  name: 'models rm',
  summary: 'Removes a model and its files.',
  usage: `${USAGE}

Asks before removing a model that is served; --yes skips the prompt. Running requests finish first.`,
  run: (args) => withErrorText(() => run(args)),
};

const OPTIONS = { ...COMMON_OPTIONS, yes: { type: 'boolean', short: 'y' } } as const;

async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(
    USAGE,
    1,
    () => parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true }),
    OPTIONS,
  );
  const id = positionals[0] as string;
  const { store } = openStore(values['data-dir']);
  const entry = store.find(id);
  if (entry === null) throw new StartupError(`there is no model ${id}; see: inference-provider models list`);
  if (entry.use !== null && values.yes !== true) {
    if (!process.stdin.isTTY) throw new UsageError(`This machine serves ${id}. Without a terminal, use --yes to remove it.`);
    const isAgreed = await confirm(`This machine serves ${id} (${byteSizeText(entry.bytes)}). Stop serving it and remove it?`);
    if (!isAgreed) {
      process.stderr.write(`${id} was not removed.\n`);
      return EXIT.needsOwner;
    }
  }
  store.remove(id);
  const outcome = await reloadModels(dataDirOf(values), store.path(entry));
  const unchanged = outcome.kind === 'not_applied' ? ` The running provider was not changed: ${outcome.why}.` : '';
  await print([values.json ? JSON.stringify({ removed: id }) : `Removed ${id}.${unchanged}`]);
  return EXIT.fine;
}
