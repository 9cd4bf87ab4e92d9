/** `Runtime` runs generations in the engine process: tokenises a prompt, creates a stream of the answer and passes it to the decoder. */
import { type Grammar, GrammarTooLarge } from '@inference/json-schema-grammar/grammar';
import type { Token } from 'node-llama-cpp';
import type { Ended, EngineFacts, GenerationRequest } from '../messages.js';
import { Decoder } from './decoding/decoder.js';
import { GrammarError, samplerConfig } from './decoding/sampling.js';
import { SequencePool } from './decoding/sequence-pool.js';
import type { LoadedModel } from './loaded-model.js';
import type { NativeSampler } from './native.js';
import type { Outbox } from './outbox.js';
import { GrammarText } from './output/grammar-text.js';
import { StreamControl, TextStream } from './output/text-stream.js';
import { TextAssembler } from './output/token-text.js';
import { InfillUnsupported, PromptTooLong, TemplateError } from './prompt/chat-prompt.js';
import { ImageError, imagesOfPrompt, NO_IMAGES, type PromptImages } from './prompt/prompt-images.js';

export class Runtime {
  readonly #controlByJob = new Map<number, StreamControl>();
  readonly #decoder: Decoder;
  /** Cache of `loaded.isEnd`. */
  readonly #isEndByToken = new Map<Token, boolean>();

  constructor(
    private readonly loaded: LoadedModel,
    private readonly outbox: Outbox,
  ) {
    const { native, samplers, repeatability, batchTokens, window, canDraft, usesGpu } = loaded;
    const { minRows, slice } = repeatability;
    const sequences = new SequencePool(native, {
      count: loaded.slots,
      // Repeatable prompts with fixed slices reuse whole slices. Otherwise reuse may end anywhere that leaves a slice to compute.
      ...(minRows === null ? { grain: slice, minRest: 1 } : { grain: 1, minRest: slice }),
      window,
    });
    this.#decoder = new Decoder({
      context: native,
      samplers,
      sequences,
      repeatability,
      batchTokens,
      usesGpu,
      canDraft,
      // Other load on the machine changes wall time, but not CPU time. GPU work shows only in wall time.
      computeClock: usesGpu ? () => performance.now() : processCpuMs,
      outbox,
    });
  }

  get facts(): EngineFacts {
    const { build, slots, contextSize, vision } = this.loaded;
    return { build, slots, contextSize, ...(vision === null ? {} : { vision: { maxImageTokens: vision.maxImageTokens } }) };
  }

  /** Resolves when the decoder has the stream, or the job has ended. Failures are reported as the end of the job; never rejects. */
  async run(job: number, request: GenerationRequest): Promise<void> {
    const control = new StreamControl(job);
    this.#controlByJob.set(job, control);
    let images = NO_IMAGES;
    const cleanUp = (): void => {
      this.#controlByJob.delete(job);
      images.free();
    };
    try {
      images = await this.#prepareImages(control, request);
      const ended = await this.#begin(control, request, images, cleanUp);
      if (ended === null) return;
      this.outbox.ended(ended);
    } catch (error) {
      // A request that only counts tokens (`maxTokens` 0) is answered for an overlong prompt too.
      if (error instanceof PromptTooLong && request.maxTokens === 0) this.outbox.ended(this.#counted(job, error.actual, false));
      else this.outbox.ended(endOf(error, job, this.loaded.contextSize));
    }
    cleanUp();
  }

  /** Undefined once the job has ended. */
  control(job: number): StreamControl | undefined {
    return this.#controlByJob.get(job);
  }

  /** Decodes the prompt's images. Throws {@link ImageError} and {@link PromptTooLong}. */
  async #prepareImages(control: StreamControl, { prompt, cacheScope }: GenerationRequest): Promise<PromptImages> {
    const [first] = imagesOfPrompt(prompt);
    if (first === undefined) return NO_IMAGES;
    const { vision } = this.loaded;
    if (vision === null) throw new ImageError(first.field);
    return vision.prepare(prompt, { scope: cacheScope, control });
  }

  /** Passes a new stream to the decoder and returns null; the stream calls `onEnd`. Returns the job's end if no stream is needed. */
  async #begin(control: StreamControl, request: GenerationRequest, images: PromptImages, onEnd: () => void): Promise<Ended | null> {
    const { job } = control;
    if (control.cancelled) return { job, kind: 'cancelled' };
    const { contextSize } = this.loaded;
    const { tokens, media, startsInsideThinking } = this.loaded.prompt.tokenize(request.prompt, contextSize, images);
    if (tokens.length === 0) return { job, kind: 'invalid_request', field: 'prompt' };
    const { vocabulary } = this.loaded;
    if (request.sampling.logitBias.some(([token]) => !vocabulary.isTokenId(token)))
      return { job, kind: 'invalid_request', field: 'logit_bias' };
    if (request.maxTokens === 0) return this.#counted(job, tokens.length, startsInsideThinking);
    const limit = Math.min(request.maxTokens, contextSize - tokens.length);
    let text: TextAssembler | GrammarText;
    let sampler: NativeSampler;
    try {
      text = request.grammar === null ? new TextAssembler(vocabulary) : this.#grammarText(request, request.grammar, limit);
      sampler = await this.#sampler(request, limit);
    } catch (error) {
      if (error instanceof GrammarError || error instanceof GrammarTooLarge) return { job, kind: 'invalid_request', field: 'grammar' };
      throw error;
    }
    const stream = new TextStream({
      control,
      prompt: tokens,
      media,
      startsInsideThinking,
      scope: request.cacheScope,
      repeatable: request.sampling.seed !== null,
      limit,
      sampler,
      text,
      logprobs: request.logprobs === null ? null : { vocabulary, alternatives: request.logprobs },
      isEnd: (token) => this.#isEnd(token),
      outbox: this.outbox,
      onPromptRead: () => images.free(),
      onEnd,
    });
    this.#decoder.add(stream);
    return null;
  }

  /** Reports the prompt's token count as a finished job. */
  #counted(job: number, promptTokens: number, startsInsideThinking: boolean): Ended {
    this.outbox.started({ job, promptTokens, startsInsideThinking });
    return { job, kind: 'finished', reason: 'stop', completionTokens: 0 };
  }

  #grammarText({ permitsFreeText }: GenerationRequest, grammar: Grammar, limit: number): GrammarText {
    const { tokenize, vocabulary } = this.loaded;
    const pieceBytes = (token: Token) => vocabulary.pieceBytes(token);
    return new GrammarText({ pieceBytes, tokenize: (text) => tokenize(text, false) }, { grammar, permitsFreeText }, limit);
  }

  async #sampler(request: GenerationRequest, limit: number): Promise<NativeSampler> {
    const config = samplerConfig(request.sampling, limit);
    const { samplers } = this.loaded;
    if (request.grammar === null) return samplers.newSampler(config);
    return samplers.newSampler({ ...config, grammarEvaluationState: await samplers.grammarState(request.grammar) });
  }

  #isEnd(token: Token): boolean {
    let isEnd = this.#isEndByToken.get(token);
    if (isEnd === undefined) {
      isEnd = this.loaded.isEnd(token);
      this.#isEndByToken.set(token, isEnd);
    }
    return isEnd;
  }
}

function endOf(error: unknown, job: number, contextSize: number): Ended {
  if (error instanceof PromptTooLong) return { job, kind: 'context_length_exceeded', limit: contextSize, actual: error.actual };
  if (error instanceof InfillUnsupported) return { job, kind: 'unsupported', field: 'suffix' };
  if (error instanceof TemplateError) return { job, kind: 'invalid_request', field: 'prompt' };
  if (error instanceof ImageError) return { job, kind: 'invalid_image', path: error.field };
  return { job, kind: 'engine_failed', message: error instanceof Error ? error.message : 'unknown' };
}

function processCpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
