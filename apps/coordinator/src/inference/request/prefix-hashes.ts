/**
 * `PrefixHashes` computes keyed hashes of a prompt's leading blocks, per account and model.
 *
 * With these, placement prefers a provider that probably caches the earlier turns of the same conversation (prefix affinity).
 */
import { hash, randomBytes } from 'node:crypto';
import { hashPromptPrefixes, type TextRequest } from '@inference/formats';
import type { PromptPrefix } from '@inference/scheduler';

/** Hexadecimal digits of a hash. The most for which a JavaScript number is exact. */
const HASH_DIGITS = 13;
const HASH_RANGE = 16 ** HASH_DIGITS;
/** Assumed mean characters of a prompt per token. */
const CHARACTERS_PER_TOKEN = 4;

/** Name of the hash key in the database, for the coordinators of a cluster. */
export const PREFIX_HASH_SECRET = 'prefix-hashes';

export class PrefixHashes {
  readonly #key: string;

  /** Without a key, hashes are only comparable within this process. */
  constructor(key: Uint8Array = randomBytes(32)) {
    this.#key = Buffer.from(key).toString('hex');
  }

  /** Prefix hashes of a prompt for each model, shortest first. The prompt is hashed only once. */
  promptPrefixes(request: TextRequest, models: readonly string[], accountId: string): ReadonlyMap<string, readonly PromptPrefix[]> {
    // The length makes the account id unambiguous. SHA-256 with a key prefix is enough, because only coordinators get the hashes.
    const start = `${this.#key} ${accountId.length} ${accountId} `;
    const blocks = hashPromptPrefixes(request, start, sha256);
    return new Map(
      models.map((model) => {
        // Added to all hashes of the prompt, so that models have different hashes.
        const offset = numberOf(sha256(`${start}${model}`));
        const prefixes = blocks.map(({ digest, characters }) => ({
          hash: (numberOf(digest) + offset) % HASH_RANGE,
          tokens: characters / CHARACTERS_PER_TOKEN,
        }));
        return [model, prefixes];
      }),
    );
  }
}

function sha256(text: string): string {
  return hash('sha256', text, 'hex');
}

function numberOf(digest: string): number {
  return Number.parseInt(digest.slice(0, HASH_DIGITS), 16);
}
