/**
 * `RemoteControl` executes and answers owner commands, which the owner sends from the console.
 *
 * Choices made on the machine take precedence: its settings can forbid commands, and a pause set there can only be ended there.
 */
import {
  lazyValidator,
  type MachineSettings,
  type OwnerAction,
  OwnerActionSchema,
  type OwnerCommand,
  type OwnerCommandRefusal,
  type OwnerCommandResult,
} from '@inference/protocol';
import { ConfigError } from '../config/read-config.js';
import type { RemoteControlStatus } from '../control/daemon-status.js';
import type { Pause } from '../host/availability/availability.js';
import { parseSchedule } from '../host/availability/parse-schedule.js';
import { MAX_PAUSE_MS } from '../host/availability/pause.js';
import type { Window } from '../host/availability/policy.js';

export interface RemoteControlOptions {
  readonly isAllowed: () => boolean;
  /** Account that the machine is linked to, or null. Its `name` is null if unknown. */
  readonly account: () => { readonly name: string | null } | null;
  readonly pause: () => Pause | null;
  /** Throws if the change cannot be stored, and then applies until a restart. */
  readonly setPause: (pause: Pause | null) => void;
  /** Throws ConfigError, or file system errors. */
  readonly setSchedule: (windows: readonly Window[]) => void;
  /** Selects or deselects a model on the disk. Returns null if done. Throws file system errors. */
  readonly setModel: (id: string, isServed: boolean) => OwnerCommandRefusal | null;
  /** Part of each answer. */
  readonly settings: () => MachineSettings;
  /** This machine's clock minus the coordinator's. */
  readonly clockSkewMs: () => number;
  readonly onCommand: (event: RemoteCommandEvent) => void;
  readonly now: () => number;
}

/** Facts for the log, without the account's name, which is personal. */
export interface RemoteCommandEvent {
  /** Null if the agent does not support the action. */
  readonly action: OwnerAction | null;
  /** Null if the command was executed. */
  readonly refusal: OwnerCommandRefusal | null;
}

/** Maximum retained answers. A repeated command gets the retained answer, without another execution. */
const MAX_RETAINED_ANSWERS = 64;
const MAX_COMMANDS_PER_MINUTE = 30;
const MINUTE_MS = 60_000;

const isAction = lazyValidator(OwnerActionSchema);

export class RemoteControl {
  readonly #options: RemoteControlOptions;
  /** Key: command id. Null: executed. */
  readonly #answered = new Map<string, OwnerCommandRefusal | null>();
  /** Number of commands in the minute from `at`. */
  #minute = { at: Number.NEGATIVE_INFINITY, count: 0 };
  #last: RemoteControlStatus['last'] = null;

  constructor(options: RemoteControlOptions) {
    this.#options = options;
  }

  get status(): RemoteControlStatus {
    return { allowed: this.#options.isAllowed(), last: this.#last };
  }

  /** Executes a command and returns the answer. Never throws. */
  execute({ command_id, action, expires_at }: OwnerCommand): OwnerCommandResult {
    const retained = this.#answered.get(command_id);
    const refusal = retained === undefined ? this.#executeNew(command_id, action, expires_at) : retained;
    return { type: 'owner_command_result', command_id, refusal, settings: this.#options.settings() };
  }

  #executeNew(commandId: string, requested: OwnerCommand['action'], expiresAt: number): OwnerCommandRefusal | null {
    const { account, now, onCommand } = this.#options;
    const action = isAction().Check(requested) ? requested : null;
    const refusal = this.#generalRefusal(expiresAt) ?? (action === null ? 'not_supported' : this.#apply(action));
    // Expiry and rate limit are not retained, because a repetition may succeed later.
    if (refusal !== 'expired' && refusal !== 'too_many_commands') this.#answered.set(commandId, refusal);
    for (const oldest of this.#answered.keys()) {
      if (this.#answered.size <= MAX_RETAINED_ANSWERS) break;
      this.#answered.delete(oldest);
    }
    if (action !== null && refusal !== 'too_many_commands') {
      this.#last = { at: now(), kind: action.kind, refusal, account: account()?.name ?? null };
    }
    onCommand({ action, refusal });
    return refusal;
  }

  /** Returns the reason to refuse the command whatever its action, or null. Counts the command for the rate limit. */
  #generalRefusal(expiresAt: number): OwnerCommandRefusal | null {
    const { account, clockSkewMs, isAllowed, now } = this.#options;
    const at = now();
    if (at - this.#minute.at >= MINUTE_MS || at < this.#minute.at) this.#minute = { at, count: 0 };
    if (++this.#minute.count > MAX_COMMANDS_PER_MINUTE) return 'too_many_commands';
    if (!isAllowed()) return 'remote_control_off';
    if (account() === null) return 'not_linked';
    return at - clockSkewMs() > expiresAt ? 'expired' : null;
  }

  #apply(action: OwnerAction): OwnerCommandRefusal | null {
    try {
      switch (action.kind) {
        case 'pause':
          return this.#pause(action.until);
        case 'resume':
          return this.#resume();
        case 'set_schedule':
          return this.#setSchedule(action.schedule);
        case 'set_model':
          return this.#options.setModel(action.model, action.served);
        default:
          return action satisfies never;
      }
    } catch (error) {
      return error instanceof ConfigError ? 'settings_invalid' : 'not_stored';
    }
  }

  #pause(until: number | null): OwnerCommandRefusal | null {
    const { account, now, pause, setPause } = this.#options;
    if (isSetOnMachine(pause())) return 'paused_on_machine';
    const at = now();
    if (until !== null && (until <= at || until > at + MAX_PAUSE_MS)) return 'time_invalid';
    setPause({ until, console: { at, account: account()?.name ?? null } });
    return null;
  }

  #resume(): OwnerCommandRefusal | null {
    const current = this.#options.pause();
    if (isSetOnMachine(current)) return 'paused_on_machine';
    if (current !== null) this.#options.setPause(null);
    return null;
  }

  #setSchedule(text: string): OwnerCommandRefusal | null {
    let windows: readonly Window[];
    try {
      windows = text.trim() === '' ? [] : parseSchedule(text);
    } catch {
      return 'schedule_invalid';
    }
    this.#options.setSchedule(windows);
    return null;
  }
}

function isSetOnMachine(pause: Pause | null): boolean {
  return pause !== null && pause.console === undefined;
}
