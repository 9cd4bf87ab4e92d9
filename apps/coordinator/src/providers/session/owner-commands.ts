/** `OwnerCommands` sends the owner's commands to one provider, awaits each answer, and holds the settings that the provider reports. */
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
  /** By the machine. `other`: a reason that this coordinator does not know. */
  | { readonly outcome: 'refused'; readonly refusal: OwnerCommandRefusal | 'other'; readonly settings: MachineSettings }
  /** The agent supports no remote control. */
  | { readonly outcome: 'unsupported' }
  /** The machine has shown no token of this account on its connection. */
  | { readonly outcome: 'not_linked' }
  | { readonly outcome: 'timeout' }
  | { readonly outcome: 'disconnected' }
  /** Too many commands await their answers. */
  | { readonly outcome: 'busy' };

/** A command of the signed-in owner. */
export interface OwnerCommandRequest {
  readonly accountId: string;
  /** UUID. */
  readonly commandId: string;
  readonly action: OwnerAction;
}

/** Maximum time for a machine's answer, in milliseconds. */
export const OWNER_COMMAND_TIMEOUT_MS = 10_000;
const MAX_PENDING = 4;

interface OwnerCommandsOptions {
  /** Members of the provider's registration. */
  readonly remoteControl: Register['remote_control'];
  readonly send: (message: OwnerCommand) => void;
  readonly now: () => number;
  readonly timeoutMs?: number;
}

interface Pending {
  readonly answer: Promise<OwnerCommandOutcome>;
  readonly settle: (outcome: OwnerCommandOutcome) => void;
}

export class OwnerCommands {
  readonly #options: OwnerCommandsOptions;
  /** By command id. */
  readonly #pending = new Map<string, Pending>();
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

  /** As last reported; null: not yet. */
  get settings(): MachineSettings | null {
    return this.#settings;
  }

  /** Never rejects. A repeated id shares the answer. */
  execute(commandId: string, action: OwnerAction): Promise<OwnerCommandOutcome> {
    const same = this.#pending.get(commandId);
    if (same !== undefined) return same.answer;
    if (!this.isSupported) return Promise.resolve({ outcome: 'unsupported' });
    if (this.#isClosed) return Promise.resolve({ outcome: 'disconnected' });
    if (this.#pending.size >= MAX_PENDING) return Promise.resolve({ outcome: 'busy' });
    const { now, send, timeoutMs = OWNER_COMMAND_TIMEOUT_MS } = this.#options;
    let settle: Pending['settle'] = () => {};
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

  /** False: no command awaits this answer. Late answers update the settings all the same. */
  answered({ command_id, refusal, settings }: OwnerCommandResult): boolean {
    this.#settings = settings;
    const pending = this.#pending.get(command_id);
    pending?.settle(refusal === null ? { outcome: 'done', settings } : { outcome: 'refused', refusal: knownRefusal(refusal), settings });
    return pending !== undefined;
  }

  /** The connection ended. */
  close(): void {
    this.#isClosed = true;
    for (const { settle } of [...this.#pending.values()]) settle({ outcome: 'disconnected' });
  }
}

function knownRefusal(code: string): OwnerCommandRefusal | 'other' {
  return OWNER_COMMAND_REFUSALS.find((known) => known === code) ?? 'other';
}
