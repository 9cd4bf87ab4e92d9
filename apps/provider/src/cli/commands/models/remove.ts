/** `models rm`: removes a model and its files from the model store. A file added in place is not deleted. */
import { parseArgs } from 'node:util';
import { dataDirOf } from '../../../config/data-dir.js';
import { StartupError } from '../../../startup-error.js';
import type { Command } from '../../command.js';
import { COMMON_OPTIONS, openStore, print, readArguments, withErrorText } from '../../models-command.js';
import { reloadModels } from '../../reload-models.js';

const USAGE = 'models rm ID [--data-dir DIR] [--json]';

export const modelsRemoveCommand: Command = {
  name: 'models rm',
  summary: 'Removes a model and its files.',
  usage: USAGE,
  run: (args) =>
    withErrorText(async () => {
      const { values, positionals } = readArguments(USAGE, 1, () =>
        parseArgs({ args: [...args], options: COMMON_OPTIONS, allowPositionals: true }),
      );
      const id = positionals[0] as string;
      const { store } = openStore(values['data-dir']);
      const entry = store.find(id);
      if (entry === null || !store.remove(id)) throw new StartupError(`there is no model ${id}; run: inference-provider models list`);
      const outcome = await reloadModels(dataDirOf(values), store.path(entry));
      const goesOn = outcome.kind === 'not_taken' ? ` The running provider continues unchanged: ${outcome.why}.` : '';
      print(values.json ? JSON.stringify({ removed: id }) : `${id} is removed.${goesOn}`);
      return 0;
    }),
};
