/**
 * `PrefixHints`: reports to peers which prompt prefixes local providers have in their KV caches, and stores the reports of peers.
 *
 * Placements prefer the coordinator with the longest cached prefix. Prefixes are keyed hashes; the coordinators share the key.
 */
import { type OwnerPrefix, OwnerPrefixes, type PromptPrefix, storedPrefixes } from '@inference/scheduler';
import Type from 'typebox';
import { Compile } from 'typebox/compile';
import { encodeMessage, parseMessage } from '../json-message.js';
import type { Broadcast } from '../membership/membership.js';
import { MessageRate } from '../message-rate.js';

interface PrefixHintsOptions {
  readonly self: string;
  readonly broadcast: Broadcast;
  /** Milliseconds; monotonic. */
  readonly now?: () => number;
}

/** Time during which hashes are gathered for one message. */
const GATHER_MS = 50;
/** Maximum hashes per prompt: those of its longest prefixes. */
const MAX_PER_ANSWER = 10;
const MAX_PER_MESSAGE = 1000;
/** Maximum gathered hashes. Further hashes are dropped, so the next prompt of such a conversation may miss the cache. */
const MAX_GATHERED = 10_000;
const MAX_MESSAGE_BYTES = 32 * 1024;
/** Maximum accepted messages per second from all peers together. */
const MAX_MESSAGES_PER_SECOND = 2000;

const validator = Compile(
  Type.Object({
    hashes: Type.Array(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }), { maxItems: MAX_PER_MESSAGE }),
  }),
);

/** Hashes of prefixes; null for a message that violates the schema. */
export const parsePrefixHashes = (bytes: Uint8Array): readonly number[] | null => parseMessage(bytes, validator)?.hashes ?? null;

export class PrefixHints {
  readonly #options: PrefixHintsOptions;
  readonly #now: () => number;
  readonly #prefixes = new OwnerPrefixes();
  readonly #gathered = new Set<number>();
  readonly #unsubscribe: () => void;
  #timer: NodeJS.Timeout | null = null;
  readonly #rate = new MessageRate(MAX_MESSAGES_PER_SECOND);

  constructor(options: PrefixHintsOptions) {
    const { broadcast, now = () => performance.now() } = options;
    this.#options = options;
    this.#now = now;
    this.#unsubscribe = broadcast.subscribe('fleet.affinity.*', (subject, bytes) => this.#receive(subject, bytes));
  }

  /** Call after a local provider answered a prompt. `promptPrefixes`: the prompt's prefixes, shortest first. */
  answered(promptPrefixes: readonly PromptPrefix[]): void {
    const hashes = storedPrefixes(promptPrefixes)
      .slice(-MAX_PER_ANSWER)
      .map(({ hash }) => hash);
    this.#prefixes.record(hashes, this.#options.self, this.#now());
    for (const hash of hashes) if (this.#gathered.size < MAX_GATHERED) this.#gathered.add(hash);
    if (this.#gathered.size > 0) this.#timer ??= setTimeout(() => this.#publish(), GATHER_MS);
  }

  /** Coordinator whose providers probably cache the longest prefix of a prompt; null: none is known. */
  find(promptPrefixes: readonly PromptPrefix[]): OwnerPrefix | null {
    return this.#prefixes.find(promptPrefixes, this.#now());
  }

  close(): void {
    this.#unsubscribe();
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  #publish(): void {
    const { broadcast, self } = this.#options;
    this.#timer = null;
    const hashes = [...this.#gathered];
    this.#gathered.clear();
    for (let start = 0; start < hashes.length; start += MAX_PER_MESSAGE) {
      broadcast.publish(`fleet.affinity.${self}`, encodeMessage({ hashes: hashes.slice(start, start + MAX_PER_MESSAGE) }));
    }
  }

  #receive(subject: string, bytes: Uint8Array): void {
    const owner = subject.slice(subject.lastIndexOf('.') + 1);
    if (owner === this.#options.self || bytes.length > MAX_MESSAGE_BYTES) return;
    const now = this.#now();
    if (!this.#rate.admit(now)) return;
    const hashes = parsePrefixHashes(bytes);
    if (hashes !== null) this.#prefixes.record(hashes, owner, now);
  }
}
