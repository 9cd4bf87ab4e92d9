/**
 * Keyed hashes of prompt prefixes, to recognise the next turn of a conversation. The key is random per process and covers the
 * account: hashes reveal nothing outside this process, and nothing of one account to another.
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
    // The lengths separate account and model unambiguously. The key comes first, and no hash leaves this process.
    const start = `${this.#key} ${accountId.length} ${accountId} ${request.model.length} ${request.model} `;
    const blocks = prefixChain(request, start, (text) => hash('sha256', text, 'hex'));
    return blocks.map(({ digest, characters }) => ({
      hash: Number.parseInt(digest.slice(0, HASH_DIGITS), 16),
      tokens: characters / CHARACTERS_PER_TOKEN,
    }));
  }
}
