/** Runs the streams of one loaded model: prompt to tokens, a sequence for each, decode, report. */
import type { Ended, EngineFacts, GenerationRequest } from '../messages.js';
import { type PromptTokens, PromptTooLong, TemplateError } from './chat-prompt.js';
import { decode } from './generate.js';
import { GrammarError, grammarState } from './grammar.js';
import type { LoadedModel } from './load.js';
import type { Outbox } from './outbox.js';
import { Rounds } from './rounds.js';
import { type SamplingOptions, samplingOptions } from './sampling.js';
import { Sequences } from './sequences.js';
import { StreamControl } from './stream.js';
import { TextAssembler } from './token-text.js';

/** A context's sequences, and the rounds they decode in. */
interface Lane {
  readonly sequences: Sequences;
  readonly rounds: Rounds;
}

export class Runtime {
  readonly #streams = new Map<number, StreamControl>();
  readonly #shared: Lane;
  readonly #seeded: Lane;

  constructor(
    private readonly loaded: LoadedModel,
    private readonly outbox: Outbox,
  ) {
    this.#shared = { sequences: new Sequences(loaded.shared), rounds: new Rounds() };
    this.#seeded = { sequences: new Sequences(loaded.seeded), rounds: new Rounds() };
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
    let prompt: PromptTokens;
    try {
      prompt = this.loaded.prompt.tokenize(request.prompt, contextSize);
    } catch (error) {
      if (error instanceof PromptTooLong) return { job, kind: 'context_length_exceeded', limit: contextSize, actual: error.actual };
      if (error instanceof TemplateError) return { job, kind: 'invalid_request', field: 'prompt' };
      throw error;
    }
    const actual = prompt.tokens.length;
    if (actual === 0) return { job, kind: 'invalid_request', field: 'prompt' };
    this.outbox.started({ job, promptTokens: actual, startsInsideThinking: prompt.startsInsideThinking });
    if (request.maxTokens === 0) return { job, kind: 'finished', reason: 'stop', completionTokens: 0 };
    let sampling: SamplingOptions;
    const limit = Math.min(request.maxTokens, contextSize - actual);
    try {
      sampling = await this.#sampling(request, limit);
    } catch (error) {
      if (error instanceof GrammarError) return { job, kind: 'invalid_request', field: 'grammar' };
      throw error;
    }

    const { sequences, rounds } = request.sampling.seed === null ? this.#shared : this.#seeded;
    const sequence = await sequences.take(control);
    if (sequence === null) return { job, kind: 'cancelled' };
    let intact = false;
    try {
      const { reason, tokens } = await decode({
        sequence,
        prompt: prompt.tokens,
        limit,
        sampling,
        text: new TextAssembler(this.loaded.vocabulary),
        control,
        rounds,
        outbox: this.outbox,
      });
      intact = true;
      return reason === 'cancelled' ? { job, kind: 'cancelled' } : { job, kind: 'finished', reason, completionTokens: tokens };
    } finally {
      if (intact) sequences.give(sequence);
      else await sequences.replace(sequence);
    }
  }

  async #sampling(request: GenerationRequest, limit: number): Promise<SamplingOptions> {
    const sampling = samplingOptions(request.sampling, limit);
    if (request.grammar !== null) sampling.options.grammarEvaluationState = await grammarState(this.loaded.model, request.grammar);
    return sampling;
  }
}
