/**
 * Steps of `setup`, in order. Each stores its result before the next begins, so that an interrupted setup can continue.
 *
 * An account, model or schedule that is settled already is kept, unless an option gives another answer.
 */

import { CoordinatorError, coordinatorAddress, requestCoordinator } from '../../account/coordinator-http.js';
import { defaultMachineName, signIn } from '../../account/sign-in.js';
import { configPath } from '../../config/data-dir.js';
import { type Change, editConfig } from '../../config/edit-config.js';
import { type ModelMemorySettings, modelMemorySettings } from '../../config/model-memory.js';
import { readConfig } from '../../config/read-config.js';
import { readHostFacts } from '../../host/hardware/host-facts.js';
import { modelRepositoryOf } from '../../models/store/model-repository.js';
import { StartupError } from '../../startup-error.js';
import { reportLink, showCode } from '../commands/login.js';
import { EXIT } from '../exit-codes.js';
import { untilInterrupted } from '../input/interrupt.js';
import { UsageError } from '../input/owner-options.js';
import type { Prompt } from '../input/prompt.js';
import { modelStoreOf, type OpenStore } from '../models-command.js';
import { clean, print } from '../output/terminal.js';
import { modelRow, recommendationFooter, recommendationHead, recommendationRow } from '../recommendation/recommendation-text.js';
import { recommendModels } from '../recommendation/recommendations.js';
import type { Answers, Settled } from './answers.js';

export interface Setup {
  readonly dataDir: string;
  readonly answers: Answers;
  readonly settled: Settled;
  /** Null if prompts are impossible. Answers then come from options and defaults. */
  readonly prompt: Prompt | null;
  /** Runs another command. */
  readonly run: (...args: readonly string[]) => Promise<number>;
}

/** A step ended with another command's exit code; its message was printed. */
export class StepFailed extends Error {
  constructor(readonly code: number) {
    super('a step of the setup failed');
    this.name = 'StepFailed';
  }
}

const CHECK_MS = 10_000;

/** Stores the address of a coordinator that answers. Throws CoordinatorError if none does and prompts are impossible. */
export async function chooseCoordinator({ dataDir, answers, settled, prompt }: Setup): Promise<string> {
  let answer = answers.coordinator ?? (prompt === null ? settled.coordinator : null);
  for (;;) {
    const text = answer ?? (await prompt?.ask('Address of the coordinator', settled.coordinator ?? '')) ?? '';
    const address = coordinatorAddress(text);
    const problem = address === null ? 'The address must be an http or https address.' : await coordinatorProblem(address);
    if (address !== null && problem === null) {
      const changes: Change[] = [{ path: ['coordinator'], value: address }];
      if (answers.simulatedEnclave) changes.push({ path: ['simulated_enclave'], value: true });
      editConfig(configPath(dataDir), changes);
      await print([`Coordinator: ${clean(address)}`]);
      return address;
    }
    if (prompt === null) throw new CoordinatorError('unreachable', problem ?? 'there is no coordinator');
    process.stderr.write(`${clean(problem ?? '')}\n`);
    answer = null;
  }
}

/** Null if a coordinator answers at the address. */
async function coordinatorProblem(address: string): Promise<string | null> {
  try {
    const { status, value } = await requestCoordinator(address, '/health', { ms: CHECK_MS });
    const isCoordinator = typeof value === 'object' && value !== null && 'status' in value;
    return status === 200 && isCoordinator
      ? null
      : `${address} answers with status ${status}; check that it is the address of a coordinator`;
  } catch (error) {
    if (error instanceof CoordinatorError) return error.message;
    throw error;
  }
}

/** Returns whether the machine is signed in. */
export async function linkAccount({ dataDir, answers, settled, prompt }: Setup, coordinator: string): Promise<boolean> {
  if (settled.linkedAt === coordinator && answers.link !== true) {
    await print(['Account: signed in already']);
    return true;
  }
  const wants = answers.link ?? (prompt === null ? true : await prompt.yesOrNo('Link this machine to your account now', true));
  if (!wants) {
    await print(['Account: none; earnings of this machine are held until an account links it (inference-provider login)']);
    return false;
  }
  const { chip } = await readHostFacts();
  const code = await untilInterrupted('Setup canceled. Run it again to resume.', async (signal) => {
    const outcome = await signIn({
      coordinator,
      dataDir,
      machineName: answers.name ?? defaultMachineName(),
      chipName: chip,
      signal,
      onCode: (shown) => showCode(shown, answers.mayOpenBrowser),
      say: (sentence) => process.stderr.write(`${clean(sentence)}\n`),
    });
    if (outcome.kind === 'signed_in') return reportLink(dataDir);
    process.stderr.write(`${clean(outcome.message)}\n`);
    return EXIT.needsOwner;
  });
  if (code !== EXIT.fine) throw new StepFailed(code);
  return true;
}

/** Value of `--model`. */
const RECOMMENDED = 'recommended';

/** Returns the served models as text. */
export async function chooseModel(setup: Setup, coordinator: string): Promise<string> {
  const { dataDir, answers, settled, prompt, run } = setup;
  if (answers.model === null && settled.models.length > 0) {
    await print([`Models: ${settled.models.join(', ')}`]);
    return settled.models.join(', ');
  }
  if (prompt !== null && answers.model === null && settled.coordinator !== null)
    await print(['Models: none chosen yet. Until then this machine serves only the demo model.']);
  const { store } = modelStoreOf(dataDir);
  const choice = answers.model === null || answers.model === RECOMMENDED ? await choiceOf(setup, coordinator) : answers.model;
  if (choice === DEMO) {
    // The demo model is served only while the owner selects none.
    for (const served of settled.models) {
      const code = await run('models', 'use', served, '--off', '--data-dir', dataDir);
      if (code !== EXIT.fine) throw new StepFailed(code);
    }
    await print(['Models: the demo model only, which earns next to nothing']);
    return 'the demo model';
  }
  const stored = store.find(choice);
  const idsBefore = new Set(store.entries().map(({ id }) => id));
  if (stored === null) {
    const code = await run('models', 'pull', choice, '--data-dir', dataDir);
    if (code !== EXIT.fine) throw new StepFailed(code);
  }
  const entries = store.entries();
  // A model that is pulled again is the last entry.
  const id = stored?.id ?? entries.find((entry) => !idsBefore.has(entry.id))?.id ?? entries.at(-1)?.id;
  if (id === undefined) throw new StartupError('the model is not in the model store');
  const code = await run('models', 'use', id, '--data-dir', dataDir);
  if (code !== EXIT.fine) throw new StepFailed(code);
  return id;
}

/**
 * The first recommendation if requested. Otherwise the owner's choice or, without prompts, a model that needs no download.
 *
 * @throws {StartupError} There is no recommendation.
 */
async function choiceOf({ dataDir, answers, prompt }: Setup, coordinator: string): Promise<string> {
  const menu = await modelMenu(modelStoreOf(dataDir), coordinator, modelMemorySettings(readConfig(configPath(dataDir))));
  const [first] = menu.items;
  if (answers.model === RECOMMENDED) {
    if (first === undefined || first.choice === DEMO)
      throw new StartupError(`there is no recommendation: ${menu.problem ?? 'no known model fits this machine'}`);
    return first.choice;
  }
  // Without a question, nothing is downloaded.
  return prompt === null ? (menu.items.find(({ isHere }) => isHere)?.choice ?? DEMO) : await pickModel(menu, prompt);
}

async function pickModel(menu: ModelMenu, prompt: Prompt): Promise<string> {
  const { head, items, footer } = menu;
  await print(['', ...head, ...items.map(({ text }) => text), '', ...footer, '']);
  const typed = await prompt.ask('Model: its number, hf:OWNER/REPOSITORY:QUANTIZATION, an https address or a file', '1');
  if (!/^\d+$/.test(typed)) return typed;
  const chosen = items[Number(typed) - 1];
  if (chosen !== undefined) return chosen.choice;
  process.stderr.write(`There is no model ${typed} in this list; its numbers are 1 to ${items.length}.\n`);
  return pickModel(menu, prompt);
}

export async function chooseSchedule({ dataDir, answers, settled, prompt, run }: Setup): Promise<void> {
  if (answers.schedule === null && settled.hasSchedule) return;
  let answer = answers.schedule ?? (prompt === null ? 'always' : null);
  for (;;) {
    const text =
      answer ?? (await prompt?.ask('Serving times: "always", or for example "mon-fri 22:00-07:00, sat-sun 00:00-24:00"', 'always')) ?? '';
    try {
      const code = /^always$/i.test(text)
        ? await run('schedule', 'clear', '--data-dir', dataDir)
        : await run('schedule', 'set', text, '--data-dir', dataDir);
      if (code !== EXIT.fine) throw new StepFailed(code);
      return;
    } catch (error) {
      if (!(error instanceof UsageError) || prompt === null) throw error;
      process.stderr.write(`${error.message}\n`);
      answer = null;
    }
  }
}

/** Returns whether the daemon runs. */
export async function startService({ dataDir, answers, prompt, run }: Setup, isRunning: boolean): Promise<boolean> {
  const question = isRunning ? 'Restart the provider to apply the changes' : 'Start the provider now, as a service';
  const wants = answers.start ?? (prompt === null ? true : await prompt.yesOrNo(question, true));
  if (!wants) return isRunning;
  const code = await run(isRunning ? 'restart' : 'start', '--data-dir', dataDir);
  if (code !== EXIT.fine) throw new StepFailed(code);
  return true;
}

interface MenuItem {
  /** Value for `--model`. */
  readonly choice: string;
  readonly text: string;
  /** False if the model must be downloaded first. */
  readonly isHere: boolean;
}

interface ModelMenu {
  /** Best first; the demo model is the last. */
  readonly items: readonly MenuItem[];
  readonly head: readonly string[];
  /** Why recommendations may be missing, or null. */
  readonly problem: string | null;
  readonly footer: readonly string[];
}

/** Value of `--model`. */
const DEMO = 'demo';

/** Models of `models recommend`, and the demo model. */
async function modelMenu({ store }: OpenStore, coordinator: string, memorySettings: ModelMemorySettings): Promise<ModelMenu> {
  const machine = { ...(await readHostFacts()), ...memorySettings };
  const found = await recommendModels({ store, coordinator, modelRepository: modelRepositoryOf(process.env) }, machine);
  const row = (index: number, name: string): string => `${String(index + 1).padStart(2)}. ${name}`;
  const items = found.models.map((model, index): MenuItem => {
    const isHere = model.origin === 'stored';
    return { choice: model.source, text: recommendationRow(row(index, clean(model.source)), model), isHere };
  });
  const demo = { choice: DEMO, text: modelRow(row(items.length, 'demo: tiny, for trials only'), 'included', '', '', ''), isHere: true };
  return {
    items: [...items, demo],
    head: recommendationHead(found, machine),
    footer: recommendationFooter(found),
    problem: found.repositoryProblem,
  };
}
