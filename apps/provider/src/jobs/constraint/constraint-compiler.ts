/**
 * Makes the forms that requests demand of their outputs. Those with schemas of a client's are made in a thread of their own: such a
 * schema may take seconds, and all other streams of the machine pass through the loop that would wait for it.
 */
import { createRequire } from 'node:module';
import type { ParsedRequest } from '@inference/formats';
import type { JobFailure } from '@inference/protocol';
import { type Pool, Promise as PoolPromise, pool, TerminateError } from 'workerpool';
import { JobError } from '../job-error.js';
import { type FormDemand, type FormedOutput, fitsForm, formDemand, type MadeForm, makeForm, schemaField } from './output-constraint.js';

/** Named in package.json, so that it is found from the sources (tests) and from the build alike. */
const ENTRY = createRequire(import.meta.url).resolve('#constraint-thread');

/** Schemas that people write take milliseconds, and the bounds of the compiler end most others well before. */
const MAX_MS = 10_000;
/** Two, so that one request that takes long does not keep all others with a schema waiting. */
const MAX_THREADS = 2;
const MAX_HEAP_MB = 512;
/** What a thread that is ended may take for it, in milliseconds: it has nothing to put away. */
const END_MS = 50;

export interface OutputForm extends MadeForm {
  /** Whether an output that was not cut off is what the client asked for. */
  fits(output: FormedOutput): Promise<boolean>;
}

/** How the thread answers. */
export type FormAnswer = { readonly form: MadeForm } | { readonly failure: JobFailure };

export class OutputForms {
  /** Its threads start with the first question. */
  readonly #pool: Pool;
  readonly #maxMs: number;

  /** `mostMs`: what one question may take. Default: 10 s. */
  constructor({ maxMs = MAX_MS }: { readonly maxMs?: number } = {}) {
    this.#maxMs = maxMs;
    this.#pool = pool(ENTRY, {
      workerType: 'thread',
      maxWorkers: MAX_THREADS,
      workerTerminateTimeout: END_MS,
      workerThreadOpts: { execArgv: [], env: {}, resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB } },
    });
  }

  /**
   * Null where the model writes as it likes. Throws {@link JobError} `unsupported` or `invalid_request` with the field, or the
   * signal's reason.
   */
  async form(parsed: ParsedRequest, signal: AbortSignal): Promise<OutputForm | null> {
    const demand = formDemand(parsed);
    if (demand === null) return null;
    const field = schemaField(demand);
    if (field === null) return { ...makeForm(demand), fits: async (output) => fitsForm(demand, output) };
    const answer = await this.#ask<FormAnswer>('make', [demand], field, signal);
    if ('failure' in answer) throw new JobError(answer.failure.code, answer.failure);
    return { ...answer.form, fits: (output) => this.#ask<boolean>('fits', [demand, output], field, signal) };
  }

  async close(): Promise<void> {
    await this.#pool.terminate(true);
  }

  async #ask<Answer>(question: string, about: [FormDemand, FormedOutput?], field: string, signal: AbortSignal): Promise<Answer> {
    signal.throwIfAborted();
    const asked = this.#pool.exec(question, about).timeout(this.#maxMs);
    const cancel = (): void => void asked.cancel();
    signal.addEventListener('abort', cancel, { once: true });
    try {
      return (await asked) as Answer;
    } catch (error) {
      signal.throwIfAborted();
      // Too long, or too much memory: the thread has ended, and the next question gets another.
      if (error instanceof PoolPromise.TimeoutError || error instanceof TerminateError) throw new JobError('unsupported', { param: field });
      throw error;
    } finally {
      signal.removeEventListener('abort', cancel);
    }
  }
}
