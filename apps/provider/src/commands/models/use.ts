/** `models use`: says which models of the library are served, and how long each stays in memory. */
import { parseArgs } from 'node:util';
import { keepText, readKeep } from '../../serving/keep.js';
import { StartError } from '../../start-error.js';
import type { Command } from '../command.js';
import { COMMON_OPTIONS, orSentence, print, readArguments, shelf } from './shared.js';

const USAGE = 'models use ID [--data-dir DIR] [--keep always|on_demand|MINUTES] [--off] [--json]';

export const modelsUseCommand: Command = {
  name: 'models use',
  summary: 'Serves a model from the next start on, or with --off no longer.',
  usage: USAGE,
  run: (args) => orSentence(async () => run(args)),
};

const OPTIONS = { ...COMMON_OPTIONS, keep: { type: 'string' }, off: { type: 'boolean' } } as const;

function run(args: readonly string[]): number {
  const { values, positionals } = readArguments(USAGE, 1, () => parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true }));
  const { library } = shelf(values['data-dir']);
  const id = positionals[0] as string;
  const entry = library.find(id);
  if (entry === null) throw new StartError(`there is no model ${id}; models list shows those there are`);
  const keep = readKeep(values.keep ?? 'always');
  if (keep === null) throw new StartError('--keep must be always, on_demand or a number of minutes');
  const use = values.off === true ? null : keepText(keep);
  library.put({ ...entry, use });
  if (values.json) print(JSON.stringify({ id, use }));
  else print(use === null ? `${id} is not served any more from the next start on.` : `${id} is served from the next start on (${use}).`);
  return 0;
}
