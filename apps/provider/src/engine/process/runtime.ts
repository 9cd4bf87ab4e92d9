/** `Runtime` runs the requests of a loaded text model: tokenises prompts and passes streams to the decoder. */

import { type Grammar, GrammarTooLarge } from '@inference/json-schema-grammar/grammar';
import type { Token } from 'node-llama-cpp';
import type { Ended, EngineFacts, GenerationRequest } from '../messages.js';
import { Decoder } from './decoding/decoder.js';
import { GrammarError, grammarState, samplerConfig } from './decoding/sampling.js';
import { SequencePool } from './decoding/sequence-pool.js';
import type { LoadedModel } from './load-model.js';
import { buildOf } from './load-weights.js';
import { type NativeSampler, nativeGrammar, newSampler } from './native.js';
import type { Outbox } from './outbox.js';
import { GrammarText } from './output/grammar-text.js';
import { StreamControl, TextStream } from './output/text-stream.js';
import { TextAssembler } from './output/token-text.js';
import { type PromptTokens, PromptTooLong, TemplateError } from './prompt/chat-prompt.js';

export class Runtime {
  readonly #streams = new Map<number, StreamControl>();
  readonly #decoder: Decoder;
  readonly #ends = new Map<Token, boolean>();

  constructor(
    private readonly loaded: LoadedModel,
    private readonly outbox: Outbox,
  ) {
    const { model, context, native, repeatability, canDraft } = loaded;
    const { minRows, slice } = repeatability;
    const sequences = new SequencePool(native, {
      count: context.totalSequences,
      // If any cut of a prompt gives the same result, reuse may end anywhere, as long as a slice remains.
      ...(minRows === null ? { grain: slice, minRest: 1 } : { grain: 1, minRest: slice }),
      window: model.fileInsights.swaSize ?? null,
    });
    this.#decoder = new Decoder({
      context: native,
      model,
      sequences,
      repeatability,
      batchTokens: context.batchSize,
      canDraft,
      outbox,
    });
  }

  get facts(): EngineFacts {
    const { model, context } = this.loaded;
    return { build: buildOf(model), slots: context.totalSequences, contextSize: context.contextSize };
  }

  /** Never rejects; failures are reported as the end of the job. */
  async run(job: number, request: GenerationRequest): Promise<void> {
    const control = new StreamControl(job);
    this.#streams.set(job, control);
    try {
      const ended = await this.#begin(control, request);
      if (ended === null) return;
      this.outbox.ended(ended);
    } catch (error) {
      this.outbox.ended({ job, kind: 'engine_failed', message: error instanceof Error ? error.message : 'unknown' });
    }
    this.#streams.delete(job);
  }

  control(job: number): StreamControl | undefined {
    return this.#streams.get(job);
  }

  /** Hands the stream to the decoder. Returns the end of a job without a stream. */
  async #begin(control: StreamControl, request: GenerationRequest): Promise<Ended | null> {
    const { job } = control;
    const { contextSize } = this.facts;
    let prompt: PromptTokens;
    try {
      prompt = this.loaded.prompt.tokenize(request.prompt, contextSize);
    } catch (error) {
      // A count request needs the number of tokens also of an overlong prompt.
      if (error instanceof PromptTooLong && request.maxTokens === 0) return this.#counted(job, error.actual, false);
      if (error instanceof PromptTooLong) return { job, kind: 'context_length_exceeded', limit: contextSize, actual: error.actual };
      if (error instanceof TemplateError) return { job, kind: 'invalid_request', field: 'prompt' };
      throw error;
    }
    const { tokens, startsInsideThinking } = prompt;
    if (tokens.length === 0) return { job, kind: 'invalid_request', field: 'prompt' };
    const isForeign = (token: number) => !this.loaded.vocabulary.holds(token);
    if (request.sampling.logitBias.some(([token]) => isForeign(token))) return { job, kind: 'invalid_request', field: 'logit_bias' };
    if (request.maxTokens === 0) return this.#counted(job, tokens.length, startsInsideThinking);
    const limit = Math.min(request.maxTokens, contextSize - tokens.length);
    const { vocabulary } = this.loaded;
    let text: TextAssembler | GrammarText;
    let sampler: NativeSampler;
    try {
      text = request.grammar === null ? new TextAssembler(vocabulary) : this.#formText(request.grammar, limit);
      sampler = await this.#sampler(request, limit);
    } catch (error) {
      if (error instanceof GrammarError || error instanceof GrammarTooLarge) return { job, kind: 'invalid_request', field: 'grammar' };
      throw error;
    }
    const stream = new TextStream({
      control,
      prompt: tokens,
      startsInsideThinking,
      scope: request.cacheScope,
      repeatable: request.sampling.seed !== null,
      limit,
      sampler,
      text,
      logprobs: request.logprobs === null ? null : { vocabulary, alternatives: request.logprobs },
      isEnd: (token) => this.#isEnd(token),
      outbox: this.outbox,
      onEnd: () => this.#streams.delete(job),
    });
    this.#decoder.add(stream);
    return null;
  }

  #counted(job: number, promptTokens: number, startsInsideThinking: boolean): Ended {
    this.outbox.started({ job, promptTokens, startsInsideThinking });
    return { job, kind: 'finished', reason: 'stop', completionTokens: 0 };
  }

  #formText(grammar: Grammar, limit: number): GrammarText {
    const { tokenize, vocabulary } = this.loaded;
    const pieceBytes = (token: Token) => vocabulary.pieceBytes(token);
    return new GrammarText({ pieceBytes, tokenize: (text) => tokenize(text, false) }, grammar, limit);
  }

  async #sampler(request: GenerationRequest, limit: number): Promise<NativeSampler> {
    const config = samplerConfig(request.sampling, limit);
    if (request.grammar === null) return newSampler(this.loaded.model, config);
    const state = await grammarState(this.loaded.model, request.grammar);
    return newSampler(this.loaded.model, { ...config, grammarEvaluationState: nativeGrammar(state) });
  }

  #isEnd(token: Token): boolean {
    let isEnd = this.#ends.get(token);
    if (isEnd === undefined) {
      isEnd = this.loaded.model.isEogToken(token);
      this.#ends.set(token, isEnd);
    }
    return isEnd;
  }
}
