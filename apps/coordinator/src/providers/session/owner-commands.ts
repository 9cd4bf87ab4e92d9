/**
 * `OwnerCommands`: remote control of one connected provider. Sends commands of its owner and waits for the answers.
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
  /** The machine refused the command. `other`: for a reason that this version does not know. */
  | { readonly outcome: 'refused'; readonly refusal: OwnerCommandRefusal | 'other'; readonly settings: MachineSettings }
  /** The agent does not support remote control. */
  | { readonly outcome: 'unsupported' }
  /** The provider has not linked itself to this account on its connection. */
  | { readonly outcome: 'not_linked' }
  | { readonly outcome: 'timeout' }
  | { readonly outcome: 'disconnected' }
  /** {@link MAX_PENDING} commands are already pending. */
  | { readonly outcome: 'busy' };

export interface OwnerCommandRequest {
  readonly accountId: string;
  /** UUID chosen by the client. A repetition with the id of a pending command shares its answer. */
  readonly commandId: string;
  readonly action: OwnerAction;
}

export const OWNER_COMMAND_TIMEOUT_MS = 10_000;
const MAX_PENDING = 4;

interface OwnerCommandsOptions {
  /** Remote control as registered by the agent; absent from old agents. */
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
  /** Commands without an answer yet, by id. */
  readonly #pending = new Map<string, PendingCommand>();
  #settings: MachineSettings | null = null;
  #isClosed = false;

  constructor(options: OwnerCommandsOptions) {
    this.#options = options;
  }

  get isSupported(): boolean {
    return this.#options.remoteControl?.versions.some((version) => REMOTE_CONTROL_VERSIONS.includes(version)) === true;
  }

  /** Whether the owner permits remote control, by a setting on the machine. */
  get isAllowed(): boolean {
    return this.#settings?.remote_control ?? this.#options.remoteControl?.allowed ?? false;
  }

  /** Newest settings reported by the machine; null: none yet. */
  get settings(): MachineSettings | null {
    return this.#settings;
  }

  /** Sends a command and waits for the answer. A pending command with the same id is not sent again. Never rejects. */
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

  reported(settings: MachineSettings): void {
    this.#settings = settings;
  }

  /** Handles an answer of the machine. Late answers still update the settings. False: no such command is pending. */
  answered({ command_id, refusal, settings }: OwnerCommandResult): boolean {
    this.#settings = settings;
    const pending = this.#pending.get(command_id);
    pending?.settle(refusal === null ? { outcome: 'done', settings } : { outcome: 'refused', refusal: knownRefusal(refusal), settings });
    return pending !== undefined;
  }

  close(): void {
    this.#isClosed = true;
    for (const { settle } of [...this.#pending.values()]) settle({ outcome: 'disconnected' });
  }
}

function knownRefusal(code: string): OwnerCommandRefusal | 'other' {
  return OWNER_COMMAND_REFUSALS.find((known) => known === code) ?? 'other';
}
