/** Texts and ids of the commands that owners send to machines from the console, and ends of pauses. */
import type { ConsoleCommandOutcome, ConsoleCommandRefusal, ConsoleStoredCommand } from '@inference/formats';
import type { OwnerAction } from '@inference/protocol';
import { DisplayableError } from '../../ui/feedback/displayable-error.js';

const REFUSAL_TEXTS: Readonly<Record<ConsoleCommandRefusal, string>> = {
  remote_control_off: 'Control from the console is turned off on the Mac.',
  not_linked: 'The Mac is not signed in to your account. Run “inference-provider login” on it.',
  expired: 'The command reached the Mac too late. Try again.',
  too_many_commands: 'Too many commands. Try again in a minute.',
  not_supported: 'The agent on the Mac does not support this. Update it.',
  paused_on_machine: 'The machine is paused on the Mac, and can only be resumed there.',
  time_invalid: 'A pause ends in the future, and within 30 days.',
  schedule_invalid: 'The Mac did not understand the schedule. Write for example: mon-fri 22:00-07:00.',
  settings_invalid: 'The settings file on the Mac contains an error. Run “inference-provider doctor” on it.',
  not_stored: 'The Mac could not store the change: its disk may be full.',
  model_unknown: 'This model is no longer on the Mac.',
  model_not_servable: 'The Mac cannot serve this model: it does not fit into the memory, or its file cannot be read.',
  last_model: 'A machine serves at least one model. Select another model first, or pause the machine.',
  models_fixed: 'The models are set on the command line of the agent.',
  other: 'The Mac refused the command for a reason that this console does not know.',
};

/** Error of a command that the machine refused. */
export class RefusedCommand extends DisplayableError {
  readonly supportId = null;
  readonly displayText: string;

  constructor(refusal: ConsoleCommandRefusal) {
    super(REFUSAL_TEXTS[refusal]);
    this.displayText = REFUSAL_TEXTS[refusal];
  }
}

/**
 * Ids for the commands of one part of the page, such as the schedule. A retry of an unanswered command reuses the id, so that the machine
 * executes the command once.
 */
export class CommandIds {
  #unanswered: { readonly choice: string; readonly id: string } | null = null;
  readonly #newId: () => string;

  constructor(newId: () => string = () => crypto.randomUUID()) {
    this.#newId = newId;
  }

  idFor(choice: string): string {
    if (this.#unanswered?.choice !== choice) this.#unanswered = { choice, id: this.#newId() };
    return this.#unanswered.id;
  }

  /** Call when the machine has executed or refused the command. The next choice then gets a new id. */
  answered(id: string): void {
    if (this.#unanswered?.id === id) this.#unanswered = null;
  }
}

export type PauseLength = 'resume' | 'hour' | 'four_hours' | 'day';

const HOUR_MS = 3_600_000;
const HOURS: Readonly<Record<Exclude<PauseLength, 'resume'>, number>> = { hour: 1, four_hours: 4, day: 24 };

/** End of a pause that begins now, in milliseconds since 1970. Null if the pause lasts until the owner resumes. */
export function pauseEnd(length: PauseLength, now: number): number | null {
  return length === 'resume' ? null : now + HOURS[length] * HOUR_MS;
}

const OUTCOME_TEXTS: Readonly<Record<Exclude<ConsoleCommandOutcome, 'refused'>, string>> = {
  done: 'Done',
  unsupported: 'Not sent: the agent on the Mac is too old.',
  not_linked: 'Not sent: the Mac is not signed in to this account.',
  timeout: 'No answer in time: the Mac may or may not have executed the command.',
  disconnected: 'No answer: the Mac was not connected, or lost the connection.',
  busy: 'Not sent: other commands awaited an answer.',
};

export function outcomeText(outcome: ConsoleStoredCommand['outcome'], refusal: ConsoleStoredCommand['refusal']): string {
  if (outcome === null) return 'No answer yet, or the coordinator stopped before the answer.';
  return outcome === 'refused' ? REFUSAL_TEXTS[refusal ?? 'other'] : OUTCOME_TEXTS[outcome];
}

/** Message after an executed command. */
export function doneText(action: OwnerAction): string {
  switch (action.kind) {
    case 'pause':
      return 'Machine paused';
    case 'resume':
      return 'Machine resumed';
    case 'set_schedule':
      return 'Schedule saved';
    case 'set_model':
      return action.served ? `${action.model} is served` : `${action.model} is no longer served`;
    default:
      return action satisfies never;
  }
}
