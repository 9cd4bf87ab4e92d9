/**
 * The daemon's part in the link to an account: shows the machine token on every connection, once the machine has registered, and
 * keeps what the coordinator said to it. Without a link the machine serves all the same.
 */
import type { CoordinatorMessage, ProviderMessage } from '@inference/protocol';
import type { LinkStatus } from '../control/link-status.js';
import { type Account, AccountFileError, readAccount } from './account-file.js';

export interface LinkClientOptions {
  readonly dataDir: string;
  /** Address for HTTP of the coordinator that this daemon serves. */
  readonly coordinator: string;
  /** False where the machine is not registered, and nothing was sent. */
  readonly send: (message: ProviderMessage) => boolean;
  readonly onChange: (status: LinkStatus) => void;
}

/** After this the coordinator is taken to know nothing of links, in milliseconds. */
const ANSWER_MS = 15_000;
/** Pause before a token is shown again that the coordinator could not judge. */
const AGAIN_MS = 30_000;

const NOT_SIGNED_IN_REMEDY = 'Nobody has signed in: what this machine earns is kept for whoever links it. Run "inference-provider login".';

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

  /** The machine has registered, or its owner has signed in or out. Reads the file again and shows what is in it. */
  show(): void {
    this.#rest();
    const account = this.#read();
    if (account === null) return;
    this.#set(status('waiting'));
    if (!this.#options.send({ type: 'link', token: account.token })) return;
    this.#timer = setTimeout(() => this.#unanswered(), ANSWER_MS).unref();
  }

  onAnswer(message: CoordinatorMessage & { type: 'linked' | 'link_refused' }): void {
    // What is said of a token that was forgotten meanwhile concerns nobody.
    if (this.#read() === null) return;
    this.#rest();
    if (message.type === 'linked') {
      this.#set(status('linked', { account_name: message.account_name }));
      return;
    }
    this.#set(status('refused', { reason: message.reason, remedy: message.remedy }));
    if (message.reason === 'try_later') this.#timer = setTimeout(() => this.show(), AGAIN_MS).unref();
  }

  /** The connection has ended: no answer comes on it. The token is shown again on the next. */
  disconnected(): void {
    this.#rest();
  }

  /** Resolves with the first status that is not `waiting`, or with `waiting` after `ms`. */
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
    this.#rest();
    for (const done of [...this.#waiters]) done();
  }

  #unanswered(): void {
    const remedy =
      'The coordinator says nothing to the sign-in of this machine; it may be of an older version. CoordinatorRequest its operator.';
    this.#set(status('refused', { reason: 'no_answer', remedy }));
  }

  /** The account that this coordinator may be shown; null where there is none, and then the status says why. */
  #read(): Account | null {
    try {
      const account = readAccount(this.#options.dataDir);
      if (account === null) {
        this.#set(status('none', { remedy: NOT_SIGNED_IN_REMEDY }));
        return null;
      }
      if (account.coordinator === this.#options.coordinator) return account;
      const remedy = `This machine was linked at ${account.coordinator}, and serves ${this.#options.coordinator}. Run "inference-provider login".`;
      this.#set(status('other_coordinator', { remedy }));
    } catch (error) {
      if (!(error instanceof AccountFileError)) throw error;
      this.#set(status('unreadable', { remedy: error.message }));
    }
    return null;
  }

  #rest(): void {
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

function status(state: LinkStatus['state'], more: Partial<Omit<LinkStatus, 'state'>> = {}): LinkStatus {
  return { state, account_name: null, reason: null, remedy: null, ...more };
}
