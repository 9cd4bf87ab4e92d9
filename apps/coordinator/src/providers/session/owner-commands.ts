/**
 * `OwnerCommands`: remote control of one connected provider. Sends owner commands, and awaits an answer for each.
 *
 * Also stores the settings that the machine reports, for the console.
 */
import {
  type MachineSettings,
  OWNER_COMMAND_REFUSALS,
  type OwnerAction,
  type OwnerCommand,
  type OwnerCommandRefusal,
  type OwnerCommandResult,
  REMOTE_CONTROL_VERSIONS,
  type Register,
} from '@inference/protocol';

export type OwnerCommandOutcome =
  | { readonly outcome: 'done'; readonly settings: MachineSettings }
  /** The machine refused. `other`: for a reason unknown to this version of the coordinator. */
  | { readonly outcome: 'refused'; readonly refusal: OwnerCommandRefusal | 'other'; readonly settings: MachineSettings }
  /** The agent supports no remote control. */
  | { readonly outcome: 'unsupported' }
  /** The machine did not present a machine token of this account on connection. */
  | { readonly outcome: 'not_linked' }
  | { readonly outcome: 'timeout' }
  | { readonly outcome: 'disconnected' }
  /** {@link MAX_PENDING} commands await answers already. */
  | { readonly outcome: 'busy' };

/** A command of the signed-in owner. */
export interface OwnerCommandRequest {
  readonly accountId: string;
  /** UUID chosen by the client. A repetition with the same id is not executed twice while the first is pending. */
  readonly commandId: string;
  readonly action: OwnerAction;
}

/** Maximum time for a machine's answer, in milliseconds. */
export const OWNER_COMMAND_TIMEOUT_MS = 10_000;
/** Maximum commands per machine that await an answer. */
const MAX_PENDING = 4;

interface OwnerCommandsOptions {
  /** Remote control in the machine's registration; absent from old agents. */
  readonly remoteControl: Register['remote_control'];
  readonly send: (message: OwnerCommand) => void;
  readonly now: () => number;
  readonly timeoutMs?: number;
}

interface PendingCommand {
  readonly answer: Promise<OwnerCommandOutcome>;
  readonly settle: (outcome: OwnerCommandOutcome) => void;
}

export class OwnerCommands {
  readonly #options: OwnerCommandsOptions;
  /** Commands that await an answer, by id. */
  readonly #pending = new Map<string, PendingCommand>();
  #settings: MachineSettings | null = null;
  #isClosed = false;

  constructor(options: OwnerCommandsOptions) {
    this.#options = options;
  }

  get isSupported(): boolean {
    return this.#options.remoteControl?.versions.some((version) => REMOTE_CONTROL_VERSIONS.includes(version)) === true;
  }

  /** Whether the owner permits commands, by a setting on the machine. */
  get isAllowed(): boolean {
    return this.#settings?.remote_control ?? this.#options.remoteControl?.allowed ?? false;
  }

  /** Settings that the machine reported last; null: none yet. */
  get settings(): MachineSettings | null {
    return this.#settings;
  }

  /** Sends a command and awaits its answer. A pending command with the same id is not sent again. Never rejects. */
  execute(commandId: string, action: OwnerAction): Promise<OwnerCommandOutcome> {
    const repeated = this.#pending.get(commandId);
    if (repeated !== undefined) return repeated.answer;
    if (!this.isSupported) return Promise.resolve({ outcome: 'unsupported' });
    if (this.#isClosed) return Promise.resolve({ outcome: 'disconnected' });
    if (this.#pending.size >= MAX_PENDING) return Promise.resolve({ outcome: 'busy' });
    const { now, send, timeoutMs = OWNER_COMMAND_TIMEOUT_MS } = this.#options;
    let settle: PendingCommand['settle'] = () => {};
    const answer = new Promise<OwnerCommandOutcome>((resolve) => {
      const timer = setTimeout(() => settle({ outcome: 'timeout' }), timeoutMs);
      settle = (outcome) => {
        clearTimeout(timer);
        this.#pending.delete(commandId);
        resolve(outcome);
      };
    });
    this.#pending.set(commandId, { answer, settle });
    send({ type: 'owner_command', command_id: commandId, expires_at: now() + timeoutMs, action });
    return answer;
  }

  /** Stores settings from a message of the machine. */
  reported(settings: MachineSettings): void {
    this.#settings = settings;
  }

  /** Handles an answer of the machine. False: no command waits for the answer. Late answers also update the settings. */
  answered({ command_id, refusal, settings }: OwnerCommandResult): boolean {
    this.#settings = settings;
    const pending = this.#pending.get(command_id);
    pending?.settle(refusal === null ? { outcome: 'done', settings } : { outcome: 'refused', refusal: knownRefusal(refusal), settings });
    return pending !== undefined;
  }

  /** Ends all pending commands as `disconnected`. */
  close(): void {
    this.#isClosed = true;
    for (const { settle } of [...this.#pending.values()]) settle({ outcome: 'disconnected' });
  }
}

function knownRefusal(code: string): OwnerCommandRefusal | 'other' {
  return OWNER_COMMAND_REFUSALS.find((known) => known === code) ?? 'other';
}
