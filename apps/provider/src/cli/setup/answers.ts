/** Answers to the questions of `setup`: from options, from what the data directory already contains, and those that are missing. */
import { existsSync, readFileSync } from 'node:fs';
import { AccountFileError, readAccount } from '../../account/account-file.js';
import { coordinatorAddress } from '../../account/coordinator-http.js';
import { configPath } from '../../config/data-dir.js';
import { locate, pointer } from '../../config/locate.js';
import { readConfig } from '../../config/read-config.js';
import { type OwnerOptions, UsageError } from '../input/owner-options.js';
import { modelStoreOf } from '../models-command.js';

export const SETUP_OPTIONS = {
  coordinator: { type: 'string' },
  link: { type: 'boolean' },
  'no-link': { type: 'boolean' },
  name: { type: 'string' },
  'no-browser': { type: 'boolean' },
  model: { type: 'string' },
  schedule: { type: 'string' },
  enrol: { type: 'boolean' },
  'no-enrol': { type: 'boolean' },
  start: { type: 'boolean' },
  'no-start': { type: 'boolean' },
  'simulated-enclave': { type: 'boolean' },
  yes: { type: 'boolean', short: 'y' },
} as const;

/** Answers of the options. Null: not answered. */
export interface Answers {
  readonly coordinator: string | null;
  readonly link: boolean | null;
  readonly name: string | null;
  readonly mayOpenBrowser: boolean;
  /** Stored id, source for `models pull`, `recommended`, or `demo`. */
  readonly model: string | null;
  /** Text for `schedule set`, or `always`. */
  readonly schedule: string | null;
  readonly enrol: boolean | null;
  readonly start: boolean | null;
  readonly simulatedEnclave: boolean;
  /** Uses defaults for missing answers. */
  readonly yes: boolean;
}

/** Throws {@link UsageError}. */
export function readAnswers({ values }: OwnerOptions): Answers {
  const text = (name: string): string | null => (typeof values[name] === 'string' && values[name] !== '' ? values[name] : null);
  const choice = (name: string): boolean | null => {
    if (values[name] === true && values[`no-${name}`] === true) throw new UsageError(`--${name} and --no-${name} cannot be used together.`);
    return values[name] === true ? true : values[`no-${name}`] === true ? false : null;
  };
  const coordinator = text('coordinator');
  if (coordinator !== null && coordinatorAddress(coordinator) === null) {
    throw new UsageError('--coordinator must be an http or https address.');
  }
  return {
    coordinator,
    link: choice('link'),
    name: text('name'),
    mayOpenBrowser: values['no-browser'] !== true,
    model: text('model'),
    schedule: text('schedule'),
    enrol: choice('enrol'),
    start: choice('start'),
    simulatedEnclave: values['simulated-enclave'] === true,
    yes: values.yes === true,
  };
}

/** Answers that the data directory contains. */
export interface Settled {
  readonly coordinator: string | null;
  /** Coordinator of the current sign-in; null if not signed in. */
  readonly linkedAt: string | null;
  /** Ids of the stored models in use. */
  readonly models: readonly string[];
  readonly hasSchedule: boolean;
  readonly enrol: boolean;
  readonly simulatedEnclave: boolean;
}

/** Throws ConfigError and ModelStoreError. */
export function settledIn(dataDir: string): Settled {
  const path = configPath(dataDir);
  const { coordinator, enrolment, simulated_enclave } = readConfig(path);
  const text = existsSync(path) ? readFileSync(path, 'utf8') : '';
  return {
    coordinator: coordinator === undefined ? null : coordinatorAddress(coordinator),
    linkedAt: signedInAt(dataDir),
    models: modelStoreOf(dataDir)
      .store.entries()
      .filter(({ use }) => use !== null)
      .map(({ id }) => id),
    hasSchedule: locate(text).has(pointer(['availability', 'windows'])),
    enrol: enrolment.enrol,
    simulatedEnclave: simulated_enclave,
  };
}

function signedInAt(dataDir: string): string | null {
  try {
    return readAccount(dataDir)?.coordinator ?? null;
  } catch (error) {
    if (error instanceof AccountFileError) return null;
    throw error;
  }
}

/** Options that are needed where prompts are impossible. */
export function missingOptions(answers: Answers, settled: Settled): string[] {
  const missing: string[] = [];
  if (answers.coordinator === null && settled.coordinator === null) missing.push('--coordinator URL');
  if (answers.yes) return missing;
  const isLinked = settled.linkedAt !== null && settled.linkedAt === (answers.coordinator ?? settled.coordinator);
  if (answers.link === null && !isLinked) missing.push('--link or --no-link');
  if (answers.model === null && settled.models.length === 0) missing.push('--model SOURCE|ID|recommended|demo');
  if (answers.schedule === null && !settled.hasSchedule) missing.push('--schedule "DAYS HH:MM-HH:MM"|always');
  if (answers.start === null) missing.push('--start or --no-start');
  return missing;
}
