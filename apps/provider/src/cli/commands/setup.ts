/**
 * `setup`: guides from a new installation to a serving provider. Options answer the questions for scripts. An interrupted setup
 * continues at the step where it stopped.
 */

import type { Command } from '../command.js';
import { EXIT } from '../exit-codes.js';
import { ownerOptions, UsageError } from '../input/owner-options.js';
import { Prompt, PromptAborted } from '../input/prompt.js';
import { runningDaemon } from '../input/service-options.js';
import { clean, print, wrapped } from '../output/terminal.js';
import { missingOptions, readAnswers, SETUP_OPTIONS, settledIn } from '../setup/answers.js';
import { chooseCoordinator, chooseModel, chooseSchedule, linkAccount, type Setup, StepFailed, startService } from '../setup/steps.js';

export const setupCommand: Command = {
  name: 'setup',
  summary: 'Sets this machine up: coordinator, account, model, schedule, start.',
  usage: `setup [--coordinator URL] [--link|--no-link] [--model SOURCE|ID|demo] [--schedule TEXT|always] [--start|--no-start] [--yes]
      [--name NAME] [--no-browser] [--simulated-enclave] [--data-dir DIR]

Each option answers one question; --yes uses defaults for the rest. An interrupted setup continues when run again.
Exit codes: 0 done, 1 a step failed or was cancelled, 2 options are missing without a terminal, 4 no coordinator.`,
  run: setup,
};

async function setup(args: readonly string[]): Promise<number> {
  const options = ownerOptions(args, SETUP_OPTIONS);
  if (options.json) throw new UsageError('setup has no JSON output.');
  const { dataDir } = options;
  const answers = readAnswers(options);
  const settled = settledIn(dataDir);
  // Imported lazily, because the command table imports this command.
  const { findCommand } = await import('../command-table.js');
  const knowsSchedules = findCommand(['schedule', 'set']) !== null;
  const isTerminal = process.stdin.isTTY === true && process.stdout.isTTY === true;
  const mayAsk = isTerminal && !answers.yes;
  const missing = mayAsk ? [] : missingOptions(answers, settled, knowsSchedules);
  if (missing.length > 0)
    throw new UsageError(`Prompts need a terminal. Give ${missing.join(', ')}${answers.yes ? '' : '; or --yes for defaults'}.`);
  const prompt = mayAsk ? new Prompt() : null;
  try {
    const run = async (...words: readonly string[]): Promise<number> => {
      const found = findCommand(words);
      if (found === null) throw new Error(`there is no command ${words[0]}`);
      return found.command.run(found.args);
    };
    return await steps({ dataDir, answers, settled, prompt, run, knowsSchedules });
  } catch (error) {
    if (error instanceof StepFailed) {
      process.stderr.write('Setup is not complete. Run it again to resume.\n');
      return error.code;
    }
    if (!(error instanceof PromptAborted)) throw error;
    process.stderr.write('\nSetup cancelled. Run it again to resume.\n');
    return EXIT.needsOwner;
  }
}

async function steps(setup: Setup): Promise<number> {
  const coordinator = await chooseCoordinator(setup);
  const isLinked = await linkAccount(setup, coordinator);
  const model = await chooseModel(setup, coordinator);
  await chooseSchedule(setup);
  const isRunning = await startService(setup, (await runningDaemon(setup.dataDir)) !== null);
  const now = isRunning ? `This machine serves ${clean(model)}` : `This machine is ready to serve ${clean(model)}`;
  const whose = isLinked
    ? 'and earns for your account'
    : 'and earnings are held until you link the machine with "inference-provider login"';
  const next = isRunning ? 'Watch the provider: inference-provider status --watch' : 'Start the provider: inference-provider start';
  await print(['', ...wrapped('', `${now}, ${whose}.`), next]);
  return EXIT.fine;
}
