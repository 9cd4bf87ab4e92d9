/**
 * `LinkRequests` checks the machine tokens with which a provider links itself to its owner's account.
 *
 * Tokens are checked one at a time. If several wait, only the newest is checked. Part of `ProviderSession`.
 */
import type { CoordinatorMessage, LinkRefusal, ProviderId } from '@inference/protocol';

type LinkAnswer =
  | { readonly kind: 'linked'; readonly accountId: string; readonly accountName: string }
  | { readonly kind: 'refused'; readonly reason: LinkRefusal };

/** Checks a token of a verified provider. Must settle, see `withinDeadline`. If the promise rejects, the provider is asked to try later. */
export type LinkService = (providerId: ProviderId, token: string) => Promise<LinkAnswer>;

export class LinkRequests {
  readonly #service: LinkService;
  readonly #send: (message: CoordinatorMessage) => void;
  #isRunning = false;
  #waiting: string | null = null;
  #unlinkCount = 0;
  #ownerAccountId: string | null = null;

  constructor(service: LinkService, send: (message: CoordinatorMessage) => void) {
    this.#service = service;
    this.#send = send;
  }

  /** Account of the newest accepted token; null: none. */
  get ownerAccountId(): string | null {
    return this.#ownerAccountId;
  }

  submit(providerId: ProviderId, token: string): void {
    this.#waiting = token;
    if (!this.#isRunning) void this.#work(providerId);
  }

  /** Ends the link, by decision of the owner or an operator. The result of a check in progress is ignored. */
  unlink(): void {
    this.#unlinkCount++;
    this.#ownerAccountId = null;
    this.#send(linkRefusedMessage('token_revoked'));
  }

  async #work(providerId: ProviderId): Promise<void> {
    this.#isRunning = true;
    for (let token = this.#take(); token !== null; token = this.#take()) {
      const before = this.#unlinkCount;
      const message = await this.#answer(providerId, token);
      if (before !== this.#unlinkCount) continue;
      if (message.type === 'linked') this.#ownerAccountId = message.account_id;
      this.#send(message);
    }
    this.#isRunning = false;
  }

  #take(): string | null {
    const token = this.#waiting;
    this.#waiting = null;
    return token;
  }

  async #answer(providerId: ProviderId, token: string): Promise<CoordinatorMessage> {
    try {
      const answer = await this.#service(providerId, token);
      if (answer.kind === 'refused') return linkRefusedMessage(answer.reason);
      return { type: 'linked', account_id: answer.accountId, account_name: answer.accountName };
    } catch {
      return linkRefusedMessage('try_later');
    }
  }
}

const REMEDIES: Readonly<Record<LinkRefusal, string>> = {
  token_revoked: 'This machine is linked to no account any more. Run "inference-provider login" to link it.',
  other_machine: 'The token is that of another machine: this data directory was copied. Run "inference-provider login" here.',
  other_account:
    'This machine earns for another account. Remove it there, under Machines in the console, then run "inference-provider login".',
  account_suspended: 'The account that this machine earns for is suspended. Ask the operator.',
  try_later: 'The coordinator cannot answer now. The agent retries automatically.',
};

function linkRefusedMessage(reason: LinkRefusal): CoordinatorMessage {
  return { type: 'link_refused', reason, remedy: REMEDIES[reason] };
}
