/**
 * Runs an opened request on the engine and writes its answer: pieces through the output filter, events through the
 * format's renderer, text into frames. Knows nothing of sealing, sockets or signing.
 */
import { type Envelope, type OutputEvent, OutputFilter } from '@inference/formats';
import type { FinishReason, Usage } from '@inference/protocol';
import { type Generation, GenerationError, type Piece } from '../engine/generation.js';
import type { GenerationRequest } from '../engine/messages.js';
import type { ThinkTags } from '../models/think-tags.js';
import { JobError } from './job-error.js';
import type { OpenedRequest } from './opened-request.js';

export interface AnswerOptions {
  readonly opened: OpenedRequest;
  readonly envelope: Envelope;
  readonly maxTokens: number;
  readonly thinkTags: ThinkTags | null;
  readonly generate: (request: GenerationRequest) => Generation;
  /** Waits while the reader is slow. */
  readonly write: (text: string) => Promise<void>;
  readonly signal: AbortSignal;
}

export interface Answered {
  readonly usage: Usage;
  readonly hiddenTokens: number;
  readonly finishReason: FinishReason;
  /** Tokens per second from the first piece to the last, or null when there were too few to tell. */
  readonly decodeTps: number | null;
}

/** Throws {@link JobError}, or the signal's reason when the job was cancelled. */
export async function answer(options: AnswerOptions): Promise<Answered> {
  const { opened, envelope, signal } = options;
  const { format, request } = opened;
  signal.throwIfAborted();
  const generation = options.generate(generationRequest(options));
  const cancel = () => generation.cancel();
  signal.addEventListener('abort', cancel, { once: true });
  const stream = request.stream ? format.stream(envelope, request) : null;
  const plain = request.stream ? null : format.plain(envelope, request);
  const emit = async (events: readonly OutputEvent[]) => {
    if (stream !== null) await options.write(stream.render(...events));
    else plain?.add(...events);
  };
  try {
    let filter: OutputFilter | null = null;
    let completionTokens = 0;
    const pace = new Pace();
    for await (const batch of generation) {
      filter ??= outputFilter(options, generation);
      const events: OutputEvent[] = [];
      completionTokens += pushBatch(filter, batch, events);
      pace.count(completionTokens);
      await emit(events);
      signal.throwIfAborted();
      if (filter.stopped) break;
    }
    filter ??= outputFilter(options, generation);
    const ended = filter.stopped ? 'stop' : generation.outcome().reason;
    const rest = filter.end();
    const { hiddenTokens } = filter;
    // What was withheld may itself have completed a stop sequence.
    const finishReason = filter.stopped ? 'stop' : ended;
    const promptTokens = generation.started?.promptTokens ?? 0;
    const usage = { prompt_tokens: promptTokens, completion_tokens: completionTokens, total_tokens: promptTokens + completionTokens };
    await emit([...rest, { type: 'finish', reason: finishReason, usage, hiddenTokens }]);
    if (plain !== null) await options.write(plain.body());
    return { usage, hiddenTokens, finishReason, decodeTps: pace.tokensPerSecond() };
  } catch (error) {
    signal.throwIfAborted();
    throw error instanceof GenerationError ? failureOf(error) : error;
  } finally {
    signal.removeEventListener('abort', cancel);
    generation.cancel();
  }
}

/** Tokens taken from the batch; fewer than it holds when a stop sequence was complete. */
function pushBatch(filter: OutputFilter, batch: readonly Piece[], events: OutputEvent[]): number {
  let tokens = 0;
  for (const piece of batch) {
    if (filter.stopped) break;
    tokens += piece.tokens;
    for (const event of filter.push(piece.text, piece.tokens)) events.push(event);
  }
  return tokens;
}

function outputFilter({ opened, thinkTags }: AnswerOptions, generation: Generation): OutputFilter {
  return new OutputFilter({
    stop: opened.request.stop,
    startsInsideThinking: generation.started?.startsInsideThinking ?? false,
    ...(thinkTags === null ? {} : { thinkTags }),
  });
}

function generationRequest({ opened, maxTokens }: AnswerOptions): GenerationRequest {
  const { messages, sampling } = opened.request;
  return {
    messages,
    maxTokens,
    sampling: {
      temperature: sampling.temperature,
      topP: sampling.topP,
      seed: sampling.seed,
      frequencyPenalty: sampling.frequencyPenalty ?? 0,
      presencePenalty: sampling.presencePenalty ?? 0,
    },
  };
}

function failureOf({ ended }: GenerationError): JobError {
  switch (ended.kind) {
    case 'context_length_exceeded':
      return new JobError('context_length_exceeded', { limit: ended.limit, actual: ended.actual });
    case 'invalid_request':
      return new JobError('invalid_request', { param: 'messages' });
    case 'cancelled':
      return new JobError('cancelled');
    case 'engine_failed':
      return new JobError('engine_failed');
    default:
      return ended satisfies never;
  }
}

/** Measures the decode rate of one stream, without the time its prompt took. */
class Pace {
  #firstAt = 0;
  #firstTokens = 0;
  #lastAt = 0;
  #tokens = 0;

  count(tokens: number): void {
    this.#lastAt = performance.now();
    this.#tokens = tokens;
    if (this.#firstAt > 0) return;
    this.#firstAt = this.#lastAt;
    this.#firstTokens = tokens;
  }

  tokensPerSecond(): number | null {
    const seconds = (this.#lastAt - this.#firstAt) / 1000;
    const tokens = this.#tokens - this.#firstTokens;
    return tokens < 8 || seconds <= 0 ? null : tokens / seconds;
  }
}
