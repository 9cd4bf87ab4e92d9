/**
 * `ConstraintCache`: compiled output constraints of recent requests, because many clients send the same tools with each request.
 *
 * Each cache scope (one account, or one secret of an end-to-end client) has entries of its own. So the time of a response reveals no
 * constraint of another scope, only that others were active.
 */
import { createHash } from 'node:crypto';
import type { Grammar } from '@inference/json-schema-grammar/grammar';
import { type CompiledConstraint, type ConstraintRequest, enforcesParameters } from './output-constraint.js';

/** Idle time after which an entry is removed, as for cached prompts. */
const MAX_IDLE_MS = 10 * 60_000;
const MAX_ENTRIES = 32;
const MAX_ENTRIES_PER_SCOPE = 8;
/** Constraints beyond these limits are compiled each time. */
const MAX_CHARACTERS = 64 * 1024;
const MAX_GRAMMAR_SIZE = 100_000;
/** Limit of the sum of all grammar sizes: some 20 MB of memory. */
const MAX_TOTAL_SIZE = 1_000_000;

interface Entry {
  readonly scope: string;
  readonly compiled: CompiledConstraint;
  readonly size: number;
  readonly usedAt: number;
}

export class ConstraintCache {
  /** Least recently used first. Keys contain hashes of schemas, never their text. */
  readonly #entries = new Map<string, Entry>();
  #totalSize = 0;
  #timer: NodeJS.Timeout | null = null;

  /** Cache key of a constraint; null if it must not be cached. */
  keyOf(constraint: ConstraintRequest, scope: string | null): string | null {
    if (scope === null) return null;
    const text = JSON.stringify(relevantParts(constraint));
    return text.length > MAX_CHARACTERS ? null : `${scope}:${createHash('sha256').update(text).digest('base64')}`;
  }

  get(key: string): CompiledConstraint | null {
    const entry = this.#entries.get(key);
    if (entry === undefined) return null;
    this.#entries.delete(key);
    this.#entries.set(key, { ...entry, usedAt: performance.now() });
    return entry.compiled;
  }

  add(key: string, scope: string, compiled: CompiledConstraint): void {
    const size = grammarSize(compiled.grammar);
    if (size > MAX_GRAMMAR_SIZE) return;
    this.#delete(key);
    const own = [...this.#entries.keys()].filter((each) => this.#entries.get(each)?.scope === scope);
    if (own.length >= MAX_ENTRIES_PER_SCOPE) this.#delete(own[0] as string);
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size < MAX_ENTRIES && this.#totalSize + size <= MAX_TOTAL_SIZE) break;
      this.#delete(oldest);
    }
    this.#entries.set(key, { scope, compiled, size, usedAt: performance.now() });
    this.#totalSize += size;
    this.#timer ??= setInterval(() => this.#sweep(), MAX_IDLE_MS / 10).unref();
  }

  #delete(key: string): void {
    this.#totalSize -= this.#entries.get(key)?.size ?? 0;
    this.#entries.delete(key);
  }

  clear(): void {
    this.#entries.clear();
    this.#totalSize = 0;
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  #sweep(): void {
    const now = performance.now();
    for (const [key, { usedAt }] of this.#entries) if (now - usedAt >= MAX_IDLE_MS) this.#delete(key);
    if (this.#entries.size === 0) this.clear();
  }
}

/** The constraint without the schemas of tools that the grammar does not enforce, which can be long. */
function relevantParts(constraint: ConstraintRequest): unknown {
  const tools = constraint.tools.map((tool) => (enforcesParameters(constraint, tool) ? tool : { name: tool.name, strict: tool.strict }));
  return { ...constraint, tools };
}

/** Number of alternatives, terms and code points: in proportion to the memory of the grammar. */
function grammarSize({ classes, rules }: Grammar): number {
  let size = 0;
  for (const ranges of classes) size += 1 + ranges.length;
  for (const alternatives of rules) for (const sequence of alternatives) size += 1 + sequence.length;
  return size;
}
