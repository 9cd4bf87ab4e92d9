/** `LinkClient` links this machine to the owner's account: sends the machine token after each registration, and reports the answer. */
import type { CoordinatorMessage, ProviderMessage } from '@inference/protocol';
import type { LinkStatus } from '../control/link-status.js';
import { type Account, AccountFileError, readAccount } from './account-file.js';

interface LinkClientOptions {
  readonly dataDir: string;
  readonly coordinator: string;
  /** Returns false if the machine is not registered, so that nothing was sent. */
  readonly send: (message: ProviderMessage) => boolean;
  readonly onChange: (status: LinkStatus) => void;
}

/** Time without an answer after which the coordinator is assumed not to support links. */
const ANSWER_MS = 15_000;
/** Delay before a token is sent again after `try_later`. */
const AGAIN_MS = 30_000;

const NOT_SIGNED_IN_REMEDY = 'Not signed in: earnings of this machine are held until an account links it. Run "inference-provider login".';

export class LinkClient {
  readonly #options: LinkClientOptions;
  #status: LinkStatus = status('waiting');
  #timer: NodeJS.Timeout | null = null;
  readonly #waiters = new Set<() => void>();

  constructor(options: LinkClientOptions) {
    this.#options = options;
    this.#read();
  }

  get status(): LinkStatus {
    return this.#status;
  }

  /** Sends the stored token. Call after registration, and after the owner signed in or out. */
  sendToken(): void {
    this.#stopTimer();
    const account = this.#read();
    if (account === null) return;
    this.#set(status('waiting'));
    if (!this.#options.send({ type: 'link', token: account.token })) return;
    this.#timer = setTimeout(() => this.#unanswered(), ANSWER_MS).unref();
  }

  onAnswer(message: CoordinatorMessage & { type: 'linked' | 'link_refused' }): void {
    // Ignores an answer if the token was removed meanwhile.
    if (this.#read() === null) return;
    this.#stopTimer();
    if (message.type === 'linked') {
      this.#set(status('linked', { account_name: message.account_name }));
      return;
    }
    this.#set(status('refused', { reason: message.reason, remedy: message.remedy }));
    if (message.reason === 'try_later') this.#timer = setTimeout(() => this.sendToken(), AGAIN_MS).unref();
  }

  /** Call when the connection ended. The next registration sends the token again. */
  disconnected(): void {
    this.#stopTimer();
  }

  /** Resolves when the status is no longer `waiting`, or after `ms`. */
  async settled(ms: number): Promise<LinkStatus> {
    if (this.#status.state !== 'waiting') return this.#status;
    await new Promise<void>((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        this.#waiters.delete(done);
        resolve();
      };
      const timer = setTimeout(done, ms);
      this.#waiters.add(done);
    });
    return this.#status;
  }

  stop(): void {
    this.#stopTimer();
    for (const done of [...this.#waiters]) done();
  }

  #unanswered(): void {
    const remedy = 'The coordinator did not answer the sign-in of this machine; its version may be older. Ask its operator.';
    this.#set(status('refused', { reason: 'no_answer', remedy }));
  }

  /** Account whose token this coordinator may get. If there is none, sets the status and returns null. */
  #read(): Account | null {
    try {
      const account = readAccount(this.#options.dataDir);
      if (account === null) {
        this.#set(status('none', { remedy: NOT_SIGNED_IN_REMEDY }));
        return null;
      }
      if (account.coordinator === this.#options.coordinator) return account;
      const remedy = `This machine was linked at ${account.coordinator}, but serves ${this.#options.coordinator}. If this address is wrong, correct it in config.toml; otherwise run "inference-provider login".`;
      this.#set(status('other_coordinator', { remedy }));
    } catch (error) {
      if (!(error instanceof AccountFileError)) throw error;
      this.#set(status('unreadable', { remedy: error.message }));
    }
    return null;
  }

  #stopTimer(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  #set(next: LinkStatus): void {
    const before = this.#status;
    this.#status = next;
    if (next.state !== 'waiting') for (const done of [...this.#waiters]) done();
    if (before.state !== next.state || before.reason !== next.reason) this.#options.onChange(next);
  }
}

function status(state: LinkStatus['state'], members: Partial<Omit<LinkStatus, 'state'>> = {}): LinkStatus {
  return { state, account_name: null, reason: null, remedy: null, ...members };
}
