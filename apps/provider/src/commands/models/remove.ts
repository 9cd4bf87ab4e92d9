/** `models rm`: takes a model out of the library, with its files. A file that was only taken in where it lay stays there. */
import { parseArgs } from 'node:util';
import { StartError } from '../../start-error.js';
import type { Command } from '../command.js';
import { COMMON_OPTIONS, orSentence, print, readArguments, shelf } from './shared.js';

const USAGE = 'models rm ID [--data-dir DIR] [--json]';

export const modelsRemoveCommand: Command = {
  name: 'models rm',
  summary: 'Removes a model and its files.',
  usage: USAGE,
  run: (args) =>
    orSentence(async () => {
      const { values, positionals } = readArguments(USAGE, 1, () =>
        parseArgs({ args: [...args], options: COMMON_OPTIONS, allowPositionals: true }),
      );
      const id = positionals[0] as string;
      if (!shelf(values['data-dir']).library.remove(id)) throw new StartError(`there is no model ${id}; models list shows those there are`);
      print(
        values.json ? JSON.stringify({ removed: id }) : `${id} is removed. A provider that serves it goes on until it is started again.`,
      );
      return 0;
    }),
};
