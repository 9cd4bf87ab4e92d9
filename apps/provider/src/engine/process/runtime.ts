/** Runs the streams of one loaded model: prompt to tokens, a sequence for each, decode, report. */
import type { Ended, EngineFacts, GenerationRequest } from '../messages.js';
import { type ChatTokens, TemplateError } from './chat-prompt.js';
import { decode } from './generate.js';
import type { LoadedModel } from './load.js';
import type { Outbox } from './outbox.js';
import { samplingOptions } from './sampling.js';
import { Sequences } from './sequences.js';
import { StreamControl } from './stream.js';
import { TextAssembler } from './token-text.js';

export class Runtime {
  readonly #streams = new Map<number, StreamControl>();
  readonly #shared: Sequences;
  readonly #seeded: Sequences;

  constructor(
    private readonly loaded: LoadedModel,
    private readonly outbox: Outbox,
  ) {
    this.#shared = new Sequences(loaded.shared);
    this.#seeded = new Sequences(loaded.seeded);
  }

  get facts(): EngineFacts {
    return { slots: this.loaded.shared.totalSequences, contextSize: this.loaded.shared.contextSize };
  }

  /** Never rejects: whatever happens is reported as the end of the job. */
  async run(job: number, request: GenerationRequest): Promise<void> {
    // A seeded stream is never held: its text is bounded by the context, and others wait for the lane behind it.
    const control = new StreamControl(job, request.sampling.seed === null);
    this.#streams.set(job, control);
    try {
      this.outbox.ended(await this.#generate(control, request));
    } catch (error) {
      this.outbox.ended({ job, kind: 'engine_failed', message: error instanceof Error ? error.message : 'unknown' });
    } finally {
      this.#streams.delete(job);
    }
  }

  control(job: number): StreamControl | undefined {
    return this.#streams.get(job);
  }

  async #generate(control: StreamControl, request: GenerationRequest): Promise<Ended> {
    const { job } = control;
    const { contextSize } = this.facts;
    const prompt = this.#tokenize(request);
    if (prompt === null || prompt.tokens.length === 0) return { job, kind: 'invalid_request' };
    const actual = prompt.tokens.length;
    // One token of room at least, or there is nothing to answer with.
    if (actual >= contextSize) return { job, kind: 'context_length_exceeded', limit: contextSize, actual };
    this.outbox.started({ job, promptTokens: actual, startsInsideThinking: prompt.startsInsideThinking });

    const fresh = request.sampling.seed !== null;
    const sequences = fresh ? this.#seeded : this.#shared;
    const taken = await sequences.take(prompt.tokens, fresh, control);
    if (taken === null) return { job, kind: 'cancelled' };
    const { sequence, held } = taken;
    let intact = false;
    try {
      const limit = Math.min(request.maxTokens, contextSize - actual);
      const { reason, tokens } = await decode({
        sequence,
        prompt: held === 0 ? prompt.tokens : prompt.tokens.slice(held),
        limit,
        sampling: samplingOptions(request.sampling, limit),
        text: new TextAssembler(this.loaded.vocabulary),
        control,
        outbox: this.outbox,
      });
      intact = true;
      return reason === 'cancelled' ? { job, kind: 'cancelled' } : { job, kind: 'finished', reason, completionTokens: tokens };
    } finally {
      if (intact) sequences.give(sequence);
      else await sequences.replace(sequence);
    }
  }

  #tokenize(request: GenerationRequest): ChatTokens | null {
    try {
      return this.loaded.prompt.tokenize(request.messages);
    } catch (error) {
      if (error instanceof TemplateError) return null;
      throw error;
    }
  }
}
