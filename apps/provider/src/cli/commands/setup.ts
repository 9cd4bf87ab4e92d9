/** `setup`: guides from a new installation to a serving provider. Run again, skips completed steps. Scripts answer by options. */
import { setTimeout as delay } from 'node:timers/promises';
import type { DaemonStatus } from '../../control/daemon-status.js';
import { missingEnclave } from '../../doctor/enclave-check.js';
import type { Command } from '../command.js';
import { EXIT } from '../exit-codes.js';
import { ownerOptions, UsageError } from '../input/owner-options.js';
import { Prompt, PromptAborted } from '../input/prompt.js';
import { answeringDaemon } from '../input/service-options.js';
import { clean, print, wrapped } from '../output/terminal.js';
import { jobOutlook, outlookText } from '../output/why-no-jobs.js';
import { missingOptions, readAnswers, SETUP_OPTIONS, settledIn } from '../setup/answers.js';
import { chooseEnrolment, enrol } from '../setup/enrolment.js';
import { chooseCoordinator, chooseModel, chooseSchedule, linkAccount, type Setup, StepFailed, startService } from '../setup/steps.js';

export const setupCommand: Command = {
  name: 'setup',
  summary: 'Sets up this machine: coordinator, account, model, schedule, start.',
  usage: `setup [--coordinator URL] [--link|--no-link] [--model SOURCE|ID|recommended|demo] [--schedule TEXT|always]
      [--enrol|--no-enrol] [--start|--no-start] [--yes] [--name NAME] [--no-browser] [--simulated-enclave] [--data-dir DIR]

Each option answers one question; --yes uses defaults for the rest, and downloads and enrols nothing. An interrupted
setup resumes when run again.
Exit codes: 0 done, 1 a step failed or was canceled, 2 options are missing without a terminal, 4 no coordinator.`,
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
  const isTerminal = process.stdin.isTTY === true && process.stdout.isTTY === true;
  const mayAsk = isTerminal && !answers.yes;
  const missing = mayAsk ? [] : missingOptions(answers, settled);
  if (missing.length > 0)
    throw new UsageError(`Without a terminal, give ${missing.join(', ')}${answers.yes ? '' : ', or --yes for defaults'}.`);
  const prompt = mayAsk ? new Prompt() : null;
  try {
    const run = async (...words: readonly string[]): Promise<number> => {
      const found = findCommand(words);
      if (found === null) throw new Error(`there is no command ${words[0]}`);
      return found.command.run(found.args);
    };
    return await runSteps({ dataDir, answers, settled, prompt, run });
  } catch (error) {
    if (error instanceof StepFailed) {
      process.stderr.write('Setup is not complete. Run it again to resume.\n');
      return error.code;
    }
    if (!(error instanceof PromptAborted)) throw error;
    process.stderr.write('\nSetup canceled. Run it again to resume.\n');
    return EXIT.needsOwner;
  }
}

async function runSteps(setup: Setup): Promise<number> {
  const { dataDir, answers, settled } = setup;
  const noEnclave = missingEnclave(dataDir, answers.simulatedEnclave || settled.simulatedEnclave);
  // Printed before all questions, because the start at the end would fail.
  if (noEnclave !== null) await print(wrapped('Warning: ', `${noEnclave.text}, so the provider cannot start. ${noEnclave.remedy ?? ''}`));
  const coordinator = await chooseCoordinator(setup);
  await print(wrapped('', PUBLISHED));
  const isLinked = await linkAccount(setup, coordinator);
  const model = await chooseModel(setup, coordinator);
  await chooseSchedule(setup);
  const isEnrolling = await chooseEnrolment(setup);
  const isRunning = await startService(setup, (await answeringDaemon(dataDir)) !== null);
  if (isRunning && isEnrolling) await enrol(setup);
  await print(['', ...(await closingLines(dataDir, isRunning, model, isLinked))]);
  return EXIT.fine;
}

async function closingLines(dataDir: string, isRunning: boolean, model: string, isLinked: boolean): Promise<string[]> {
  const earnings = isLinked
    ? 'Earnings go to your account.'
    : 'Earnings are held until you link this machine with "inference-provider login".';
  if (!isRunning)
    return [
      ...wrapped('', `This machine is set up to serve ${clean(model)}, but is not serving yet. ${earnings}`),
      'To start the provider, run: inference-provider start',
    ];
  const status = await settledStatus(dataDir);
  const state = status === null ? 'The provider is not responding. See: inference-provider doctor' : outlookText(jobOutlook(status));
  return [
    ...wrapped('State   ', state),
    ...wrapped('Models  ', model),
    ...wrapped('        ', earnings),
    'To watch it, run: inference-provider status --watch',
  ];
}

/** Time for connection and verification after the start. */
const SETTLE_MS = 20_000;
const POLL_MS = 500;

/** Status once the coordinator has decided on this machine, or after `SETTLE_MS`. Null if no daemon answers. */
async function settledStatus(dataDir: string): Promise<DaemonStatus | null> {
  const deadline = performance.now() + SETTLE_MS;
  for (;;) {
    const status = await answeringDaemon(dataDir);
    const isSettled = status !== null && status.state === 'running' && (status.trust !== null || status.connection.problem !== null);
    if (isSettled || performance.now() > deadline) return status;
    await delay(POLL_MS);
  }
}

const PUBLISHED =
  'The coordinator publishes the serial number, chip, memory, security settings and models of this machine, so that clients can verify responses. It does not publish your account, prompts or responses.';
