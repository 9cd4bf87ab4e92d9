/** `PrefixHashes`: keyed hashes of prompt prefixes per account, which recognise the next turn of a conversation. */
import { hash, randomBytes } from 'node:crypto';
import { hashPromptPrefixes, type TextRequest } from '@inference/formats';
import type { PromptPrefix } from '@inference/scheduler';

/** Maximum hexadecimal digits that a number represents exactly. */
const HASH_DIGITS = 13;
/** Mean characters of a prompt per token. */
const CHARACTERS_PER_TOKEN = 4;

/** Name of the secret shared by the coordinators of a cluster. */
export const PREFIX_HASH_SECRET = 'prefix-hashes';

export class PrefixHashes {
  readonly #key: string;

  constructor(key: Uint8Array = randomBytes(32)) {
    this.#key = Buffer.from(key).toString('hex');
  }

  /** The prefixes of a request's prompt, the shortest first. */
  promptPrefixes(request: TextRequest, accountId: string): readonly PromptPrefix[] {
    // The lengths separate account and model unambiguously. The key comes first, and hashes go to coordinators only.
    const start = `${this.#key} ${accountId.length} ${accountId} ${request.model.length} ${request.model} `;
    const blocks = hashPromptPrefixes(request, start, (text) => hash('sha256', text, 'hex'));
    return blocks.map(({ digest, characters }) => ({
      hash: Number.parseInt(digest.slice(0, HASH_DIGITS), 16),
      tokens: characters / CHARACTERS_PER_TOKEN,
    }));
  }
}
