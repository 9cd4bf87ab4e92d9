/**
 * `ConstraintCache`: compiled constraints of recent requests. Agents of clients send the same tools with each request.
 *
 * Each cache scope (a keyed hash of an account) has entries of its own, so the time of a response reveals nothing about other accounts.
 */
import { createHash } from 'node:crypto';
import type { CompiledConstraint, ConstraintRequest } from './output-constraint.js';

/** As long as cached prompts. */
const MAX_IDLE_MS = 10 * 60_000;
const MAX_ENTRIES = 32;
const MAX_ENTRIES_PER_SCOPE = 8;
/** Larger constraints are compiled each time, so that the cache takes at most some 30 MB. */
const MAX_CHARACTERS = 64 * 1024;
const MAX_RULES = 10_000;

interface Entry {
  readonly scope: string;
  readonly compiled: CompiledConstraint;
  readonly usedAt: number;
}

export class ConstraintCache {
  /** Least recently used first. Keys contain hashes of schemas, never their text. */
  readonly #entries = new Map<string, Entry>();
  #timer: NodeJS.Timeout | null = null;

  /** Key of a constraint; null for one that is not cached. */
  keyOf(constraint: ConstraintRequest, scope: string | null): string | null {
    if (scope === null) return null;
    const text = JSON.stringify(constraint);
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
    if (compiled.grammar.rules.length > MAX_RULES) return;
    this.#entries.delete(key);
    const own = [...this.#entries.keys()].filter((each) => this.#entries.get(each)?.scope === scope);
    const [evicted] = own.length >= MAX_ENTRIES_PER_SCOPE ? own : this.#entries.size >= MAX_ENTRIES ? this.#entries.keys() : [];
    if (evicted !== undefined) this.#entries.delete(evicted);
    this.#entries.set(key, { scope, compiled, usedAt: performance.now() });
    this.#timer ??= setInterval(() => this.#sweep(), MAX_IDLE_MS / 10).unref();
  }

  clear(): void {
    this.#entries.clear();
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  #sweep(): void {
    const now = performance.now();
    for (const [key, { usedAt }] of this.#entries) if (now - usedAt >= MAX_IDLE_MS) this.#entries.delete(key);
    if (this.#entries.size === 0) this.clear();
  }
}
