/**
 * Keyed hashes of the beginnings of prompts, by which a conversation's next turn is recognised. The key is made with the process
 * and the account is part of it, so that they say nothing outside this process and nothing of one account to another.
 */
import { hash, randomBytes } from 'node:crypto';
import { prefixChain, type TextRequest } from '@inference/formats';
import type { PromptPrefix } from '@inference/scheduler';

/** As many as a number holds exactly. */
const HASH_DIGITS = 13;
/** Of a prompt's text, on average. */
const CHARACTERS_PER_TOKEN = 4;

export class PrefixHashes {
  readonly #key = randomBytes(32).toString('hex');

  /** The prefixes of a request's prompt, the shortest first. */
  chain(request: TextRequest, accountId: string): readonly PromptPrefix[] {
    // The lengths keep account and model apart; the key comes first, and no hash ever leaves this process.
    const start = `${this.#key} ${accountId.length} ${accountId} ${request.model.length} ${request.model} `;
    const blocks = prefixChain(request, start, (text) => hash('sha256', text, 'hex'));
    return blocks.map(({ digest, characters }) => ({
      hash: Number.parseInt(digest.slice(0, HASH_DIGITS), 16),
      tokens: characters / CHARACTERS_PER_TOKEN,
    }));
  }
}
