/** `ConstraintCompiler` compiles output constraints to grammars, in worker threads if a client's schema could take seconds. */
import { createRequire } from 'node:module';
import type { ParsedRequest } from '@inference/formats';
import type { JobFailure } from '@inference/protocol';
import { type Pool, Promise as PoolPromise, pool, TerminateError } from 'workerpool';
import { JobError } from '../job-error.js';
import { ConstraintCache } from './constraint-cache.js';
import {
  type CompiledConstraint,
  type ConstraintRequest,
  compileConstraint,
  constraintRequest,
  type FinishedOutput,
  satisfiesConstraint,
  schemaField,
} from './output-constraint.js';

/** The built file, even if tests run the sources. */
const ENTRY = createRequire(import.meta.url).resolve('#constraint-thread');

/** Milliseconds for a task. Usual schemas take a few; the compiler's own limits stop most others much earlier. */
const MAX_TASK_MS = 10_000;
/** Two threads, so that one slow schema does not block all other requests with a schema. */
const MAX_THREADS = 2;
const MAX_HEAP_MB = 512;
/** Grace period for terminating a thread, in milliseconds. */
const TERMINATE_MS = 50;

export interface OutputConstraint extends CompiledConstraint {
  /** Whether a complete output satisfies the constraint. */
  fits(output: FinishedOutput): Promise<boolean>;
}

export type CompilationResult = { readonly constraint: CompiledConstraint } | { readonly failure: JobFailure };

export class ConstraintCompiler {
  /** Threads start with the first task. */
  readonly #pool: Pool;
  readonly #maxMs: number;
  readonly #cache = new ConstraintCache();

  constructor({ maxMs = MAX_TASK_MS }: { readonly maxMs?: number } = {}) {
    this.#maxMs = maxMs;
    this.#pool = pool(ENTRY, {
      workerType: 'thread',
      maxWorkers: MAX_THREADS,
      workerTerminateTimeout: TERMINATE_MS,
      workerThreadOpts: { execArgv: [], env: {}, resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB } },
    });
  }

  /**
   * Resolves to null if the request has no constraint.
   *
   * @param scope Cache scope whose later requests may use the compiled constraint. Null: not cached.
   * @throws {JobError} `unsupported` or `invalid_request`, with the field; or the signal's reason.
   */
  async compile(parsed: ParsedRequest, signal: AbortSignal, scope: string | null = null): Promise<OutputConstraint | null> {
    const constraint = constraintRequest(parsed);
    if (constraint === null) return null;
    const field = schemaField(constraint);
    const key = this.#cache.keyOf(constraint, scope);
    let compiled = key === null ? null : this.#cache.get(key);
    if (compiled === null) {
      compiled = field === null ? compileConstraint(constraint) : await this.#compileInThread(constraint, field, signal);
      if (key !== null && scope !== null) this.#cache.add(key, scope, compiled);
    }
    const fits: OutputConstraint['fits'] =
      field === null
        ? async (output) => satisfiesConstraint(constraint, output)
        : (output) => this.#runInThread<boolean>('fits', [constraint, output], field, signal);
    return { ...compiled, fits };
  }

  async #compileInThread(constraint: ConstraintRequest, field: string, signal: AbortSignal): Promise<CompiledConstraint> {
    const result = await this.#runInThread<CompilationResult>('compile', [constraint], field, signal);
    if ('failure' in result) throw new JobError(result.failure.code, result.failure);
    return result.constraint;
  }

  async close(): Promise<void> {
    this.#cache.clear();
    await this.#pool.terminate(true);
  }

  /** Runs a function of `thread.ts`. Throws {@link JobError} `unsupported` beyond the limits of time and memory, or the signal's reason. */
  async #runInThread<Result>(
    name: 'compile' | 'fits',
    parameters: [ConstraintRequest, FinishedOutput?],
    field: string,
    signal: AbortSignal,
  ): Promise<Result> {
    signal.throwIfAborted();
    const execution = this.#pool.exec(name, parameters).timeout(this.#maxMs);
    const cancel = (): void => void execution.cancel();
    signal.addEventListener('abort', cancel, { once: true });
    try {
      return (await execution) as Result;
    } catch (error) {
      signal.throwIfAborted();
      // The task took too long or too much memory. Its thread has ended; the next task gets another.
      if (error instanceof PoolPromise.TimeoutError || error instanceof TerminateError) throw new JobError('unsupported', { param: field });
      throw error;
    } finally {
      signal.removeEventListener('abort', cancel);
    }
  }
}
