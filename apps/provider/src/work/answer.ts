/**
 * Runs an opened request on the engine and writes its answer: pieces through the output filter, events through the
 * format's renderer, text into frames. Knows nothing of sealing, sockets or signing.
 */
import { type Envelope, type FinishEvent, type OutputEvent, OutputFilter, type TextRequest } from '@inference/formats';
import type { FinishReason, Usage } from '@inference/protocol';
import { sha256Hex } from '@inference/protocol/crypto';
import { type Generation, GenerationError, type Piece } from '../engine/generation.js';
import type { GenerationRequest } from '../engine/messages.js';
import type { ThinkTags } from '../models/think-tags.js';
import { generationRequest } from './generation-request.js';
import { JobError } from './job-error.js';
import type { OpenedRequest } from './opened-request.js';
import { orIdle } from './or-idle.js';
import { Pace } from './pace.js';
import { type FieldNames, fieldNames } from './unsupported.js';

export interface AnswerOptions {
  readonly opened: OpenedRequest;
  readonly envelope: Envelope;
  readonly maxTokens: number;
  readonly thinkTags: ThinkTags | null;
  readonly generate: (request: GenerationRequest) => Generation;
  /** Waits while the reader is slow. */
  readonly write: (text: string) => Promise<void>;
  /** Silence after which a stream shows a sign of life, in milliseconds. */
  readonly pingAfterMs: number;
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
  const { opened, signal } = options;
  signal.throwIfAborted();
  const generation = options.generate(generationRequest(opened.request, options.maxTokens, opened.grammar));
  const cancel = () => generation.cancel();
  signal.addEventListener('abort', cancel, { once: true });
  try {
    return await writeAnswer(options, generation);
  } catch (error) {
    signal.throwIfAborted();
    throw error instanceof GenerationError ? failureOf(error, fieldNames(opened)) : error;
  } finally {
    signal.removeEventListener('abort', cancel);
    generation.cancel();
  }
}

async function writeAnswer(options: AnswerOptions, generation: Generation): Promise<Answered> {
  const { envelope, signal } = options;
  const { request, answer } = options.opened;
  const stream = request.stream ? answer.stream(envelope) : null;
  const plain = request.stream ? null : answer.plain(envelope);
  const emit = async (events: readonly OutputEvent[]) => {
    if (stream !== null) await options.write(stream.render(...events));
    else plain?.add(...events);
  };
  let filter: OutputFilter | null = null;
  const begin = async () => {
    await emit([{ type: 'start', promptTokens: generation.started?.promptTokens ?? 0 }]);
    return outputFilter(options, generation);
  };
  let completionTokens = 0;
  const pace = new Pace();
  for await (const batch of orIdle(generation, options.pingAfterMs)) {
    signal.throwIfAborted();
    // Before the prompt is read there is no answer to show life in.
    if (batch === null && generation.started === null) continue;
    filter ??= await begin();
    const events: OutputEvent[] = batch === null ? [{ type: 'ping' }] : [];
    if (batch !== null) {
      completionTokens += pushBatch(filter, request, batch, events);
      pace.count(completionTokens);
    }
    await emit(events);
    signal.throwIfAborted();
    if (isDone(filter, request)) break;
  }
  const ended = filter !== null && isDone(filter, request) ? 'stop' : generation.outcome().reason;
  filter ??= await begin();
  const rest = filter.end();
  const promptTokens = generation.started?.promptTokens ?? 0;
  const usage = { prompt_tokens: promptTokens, completion_tokens: completionTokens, total_tokens: promptTokens + completionTokens };
  const finish = finishEvent(filter, ended, usage);
  await emit([...rest, finish]);
  if (plain !== null) await options.write(plain.body());
  return { usage, hiddenTokens: finish.hiddenTokens, finishReason: finish.reason, decodeTps: pace.tokensPerSecond() };
}

/** After the filter's end: what was withheld may itself have completed a stop sequence. */
function finishEvent(filter: OutputFilter, ended: 'stop' | 'length', usage: Usage): FinishEvent {
  const { stopSequence, hiddenTokens } = filter;
  const called = stopSequence === null && ended === 'stop' && filter.startedToolCalls > 0;
  return {
    type: 'finish',
    reason: called ? 'tool_calls' : stopSequence === null ? ended : 'stop',
    ...(stopSequence === null ? {} : { stopSequence }),
    usage,
    hiddenTokens,
    completedAt: Math.floor(Date.now() / 1000),
  };
}

/** The answer is complete, whatever else the model would write. */
function isDone(filter: OutputFilter, { parallelToolCalls }: TextRequest): boolean {
  return filter.stopped || (!parallelToolCalls && filter.completedToolCalls > 0);
}

/** Tokens taken from the batch; fewer than it holds when the answer was complete before its end. */
function pushBatch(filter: OutputFilter, request: TextRequest, batch: readonly Piece[], events: OutputEvent[]): number {
  let tokens = 0;
  for (const piece of batch) {
    if (isDone(filter, request)) break;
    tokens += piece.tokens;
    for (const event of filter.push(piece.text, piece.tokens)) events.push(event);
  }
  return tokens;
}

/** JSON holds neither character as it is, so nothing of a demanded form is taken for a thought. */
const NO_TAGS: ThinkTags = { open: '\u0001', close: '\u0002' };

function outputFilter({ opened, envelope, thinkTags }: AnswerOptions, generation: Generation): OutputFilter {
  const { stop, tools, toolChoice } = opened.request;
  const mayCall = tools.length > 0 && toolChoice.type !== 'none';
  return new OutputFilter({
    stop,
    startsInsideThinking: generation.started?.startsInsideThinking ?? false,
    ...(opened.grammar !== null ? { thinkTags: NO_TAGS } : thinkTags === null ? {} : { thinkTags }),
    ...(mayCall ? { toolCalls: { callId: (index) => callId(envelope.responseId, index) } } : {}),
  });
}

/** Unique among all answers, and the same in every rendering of this one. */
function callId(responseId: string, index: number): string {
  return `call_${sha256Hex(new TextEncoder().encode(`${responseId} ${index}`)).slice(0, 24)}`;
}

function failureOf({ ended }: GenerationError, fields: FieldNames): JobError {
  switch (ended.kind) {
    case 'context_length_exceeded':
      return new JobError('context_length_exceeded', { limit: ended.limit, actual: ended.actual });
    case 'invalid_request':
      return new JobError('invalid_request', { param: ended.field === 'prompt' ? fields.prompt : fields.responseFormat });
    case 'cancelled':
      return new JobError('cancelled');
    case 'engine_failed':
      return new JobError('engine_failed');
    default:
      return ended satisfies never;
  }
}
