/** `models use`: selects which models are served and how long each stays in memory. */
import { parseArgs } from 'node:util';
import { dataDirOf } from '../../../config/data-dir.js';
import { keepAliveText, parseKeepAlive } from '../../../jobs/serving/keep-alive.js';
import { StartupError } from '../../../startup-error.js';
import type { Command } from '../../command.js';
import { EXIT } from '../../exit-codes.js';
import { UsageError } from '../../input/owner-options.js';
import { COMMON_OPTIONS, openStore, readArguments, withErrorText } from '../../models-command.js';
import { print } from '../../output/terminal.js';
import { reloadModels } from '../../reload-models.js';

const USAGE = 'models use ID [--data-dir DIR] [--keep always|on_demand|MINUTES] [--off] [--json]';

export const modelsUseCommand: Command = {
  name: 'models use',
  summary: 'Starts serving a model, or stops with --off.',
  usage: `${USAGE}

A running provider applies the change at once. --keep sets how long an unused model stays in memory: always (default),
on_demand (no longer than needed), or minutes.`,
  run: (args) => withErrorText(() => run(args)),
};

const OPTIONS = { ...COMMON_OPTIONS, keep: { type: 'string' }, off: { type: 'boolean' } } as const;

async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(
    USAGE,
    1,
    () => parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true }),
    OPTIONS,
  );
  const { store } = openStore(values['data-dir']);
  const id = positionals[0] as string;
  const keep = parseKeepAlive(values.keep ?? 'always');
  if (keep === null) throw new UsageError('--keep must be always, on_demand or a number of minutes.');
  const entry = store.find(id);
  if (entry === null) throw new StartupError(`there is no model ${id}; see: inference-provider models list`);
  const use = values.off === true ? null : keepAliveText(keep);
  store.put({ ...entry, use });
  const outcome = await reloadModels(dataDirOf(values), store.path(entry));
  const problem = use === null || outcome.kind !== 'applied' ? null : outcome.problem;
  if (values.json) await print([JSON.stringify({ id, use, live: outcome.kind === 'applied' && problem === null })]);
  else if (problem === null) {
    const when = outcome.kind === 'applied' ? 'now' : 'the next start';
    await print([use === null ? `${id} is no longer served from ${when} on.` : `${id} is served from ${when} on (${use}).`]);
  }
  if (problem !== null) process.stderr.write(`${id} is selected but cannot be served: ${problem}.\n`);
  if (outcome.kind === 'not_applied') process.stderr.write(`The running provider was not changed: ${outcome.why}.\n`);
  return problem === null ? EXIT.fine : EXIT.needsOwner;
}
