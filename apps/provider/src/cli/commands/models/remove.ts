/** `models rm`: removes a model and its files from the library. A file added in place is not deleted. */
import { parseArgs } from 'node:util';
import { dataDirOf } from '../../../config/data-dir.js';
import { StartupError } from '../../../startup-error.js';
import type { Command } from '../../command.js';
import { COMMON_OPTIONS, print, readArguments, shelf, withErrorText } from '../../model-library.js';
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
      const { library } = shelf(values['data-dir']);
      const entry = library.find(id);
      if (entry === null || !library.remove(id)) throw new StartupError(`there is no model ${id}; run: inference-provider models list`);
      const outcome = await reloadModels(dataDirOf(values), library.path(entry));
      const goesOn = outcome.kind === 'not_taken' ? ` The running provider continues unchanged: ${outcome.why}.` : '';
      print(values.json ? JSON.stringify({ removed: id }) : `${id} is removed.${goesOn}`);
      return 0;
    }),
};
