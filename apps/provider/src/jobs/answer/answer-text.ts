/** `answer` answers a text request: output filter, renderer of the format, frames. Independent of sealing, sockets and signing. */
import { type FinishEvent, type OutputEvent, OutputFilter, type ResponseMetadata, type TextRequest, Transcript } from '@inference/formats';
import type { FinishReason, Usage } from '@inference/protocol';
import { sha256Hex } from '@inference/protocol/crypto';
import { type Generation, GenerationError, type Piece } from '../../engine/generation.js';
import type { GenerationRequest } from '../../engine/messages.js';
import type { ThinkTags } from '../../models/think-tags.js';
import { fieldNames } from '../field-names.js';
import { JobError } from '../job-error.js';
import type { OpenedRequest } from '../opened-request.js';
import type { Computation } from './computed-by.js';
import { failureOf } from './engine-failure.js';
import { generationRequest } from './generation-request.js';
import { type OutputCounts, type PromptCounts, signedOutput, signedPrompt, usageOf } from './signed-usage.js';
import { ThroughputMeter } from './throughput-meter.js';

interface AnswerOptions {
  readonly opened: OpenedRequest;
  readonly responseMetadata: ResponseMetadata;
  readonly maxTokens: number;
  /** Scope of prompt-prefix sharing; null: no sharing. */
  readonly cacheScope: string | null;
  readonly thinkTags: ThinkTags | null;
  /** `thinks` of the model's offer. */
  readonly thinks: boolean | null;
  /** Bytes of the request's body. */
  readonly requestBytes: number;
  readonly generate: (request: GenerationRequest) => Generation;
  /** Waits while the reader is slow. */
  readonly write: (text: string) => Promise<void>;
  /** Silence after which a stream sends a ping, in milliseconds. */
  readonly pingAfterMs: number;
  /** Aborted when the reader has disconnected: the text written so far is the answer. */
  readonly closing: AbortSignal;
  /** Aborted when the job is given up. */
  readonly signal: AbortSignal;
}

export interface Answered {
  readonly usage: Usage;
  readonly hiddenTokens: number;
  readonly finishReason: FinishReason;
  readonly computation: Computation;
  /** Decode tokens per second, from the first piece to the last; null for too few tokens. */
  readonly decodeTps: number | null;
  /** Prefill tokens per second of the uncached part of the prompt; null for too few tokens, absent if not measured. */
  readonly prefillTps?: number | null;
  /** Hexadecimal SHA-256 of each image, in order. */
  readonly imageSha256?: readonly string[];
}

/** Maximum digits of the counts in a usage. */
const USAGE_DIGITS = 32;
/** Maximum attempts at output of the required format, which the grammar already enforces. */
const MAX_ATTEMPTS = 3;

/** The output missed its format before anything was sent; another attempt is possible. */
class ConstraintViolation extends Error {}

/** Throws {@link JobError}, or the signal's reason when the job was given up. */
export async function answer(options: AnswerOptions): Promise<Answered> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await attemptAnswer(options, attempt);
    } catch (error) {
      if (!(error instanceof ConstraintViolation)) throw error;
      if (options.opened.request.stream || attempt + 1 === MAX_ATTEMPTS) throw new JobError('engine_failed');
    }
  }
}

async function attemptAnswer(options: AnswerOptions, attempt: number): Promise<Answered> {
  const { opened, signal, closing } = options;
  signal.throwIfAborted();
  const request = generationRequest(opened.request, options, opened.constraint, attempt);
  const generation = options.generate(request);
  const cancel = () => generation.cancel();
  signal.addEventListener('abort', cancel, { once: true });
  closing.addEventListener('abort', cancel, { once: true });
  try {
    const counts = opened.request.task === 'count';
    const computation = { usedTemplate: request.prompt.type === 'chat', sampling: counts ? null : request.sampling };
    return { ...(await writeAnswer(options, generation)), computation };
  } catch (error) {
    signal.throwIfAborted();
    throw error instanceof GenerationError ? failureOf(error, fieldNames(opened)) : error;
  } finally {
    signal.removeEventListener('abort', cancel);
    closing.removeEventListener('abort', cancel);
    generation.cancel();
  }
}

async function writeAnswer(options: AnswerOptions, generation: Generation): Promise<Omit<Answered, 'computation'>> {
  const { responseMetadata, signal, closing } = options;
  const { request, answer, constraint } = options.opened;
  const transcript = constraint === null ? null : new Transcript({ showReasoning: false });
  const stream = request.stream ? answer.stream(responseMetadata) : null;
  const plain = request.stream ? null : answer.plain(responseMetadata);
  /** UTF-16 units written, at most the number of bytes. */
  let written = 0;
  const write = async (text: string) => {
    written += text.length;
    await options.write(text);
  };
  const emit = async (events: readonly OutputEvent[]) => {
    for (const event of events) transcript?.add(event);
    if (stream !== null) await write(stream.render(...events));
    else plain?.add(...events);
  };
  let filter: OutputFilter | null = null;
  const begin = async () => {
    const { promptTokens, cachedTokens } = promptOf(options, generation);
    await emit([{ type: 'start', promptTokens, ...(cachedTokens === 0 ? {} : { cachedTokens }) }]);
    return outputFilter(options, generation);
  };
  let completionTokens = 0;
  const pace = new ThroughputMeter();
  for await (const batch of orIdle(generation, options.pingAfterMs)) {
    signal.throwIfAborted();
    if (closing.aborted) break;
    // Sends no ping before the prompt is read: there is no answer yet.
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
  const counted = (answerBytes: number): OutputCounts =>
    signedOutput({ completionTokens, hiddenTokens: filter?.hiddenTokens ?? 0 }, { thinks: options.thinks, answerBytes });
  const prompt = promptOf(options, generation);
  if (closing.aborted) {
    const { hiddenTokens, ...output } = counted(written);
    const usage = usageOf(prompt, output.completionTokens);
    return { usage, hiddenTokens, finishReason: 'cancelled', ...ratesOf(pace, generation) };
  }
  const ended = filter !== null && isDone(filter, request) ? 'stop' : generation.outcome().reason;
  filter ??= await begin();
  const rest = filter.end();
  await emit(rest);
  const isWhole = ended === 'stop' && filter.stopSequence === null;
  if (
    isWhole &&
    transcript !== null &&
    constraint !== null &&
    !(await constraint.fits({ text: transcript.text, calls: transcript.toolCalls }))
  )
    throw new ConstraintViolation();
  const { hiddenTokens, ...output } = counted(plain === null ? written : Number.POSITIVE_INFINITY);
  const usage = usageOf(prompt, output.completionTokens);
  const finish = finishEvent(filter, ended, usage, hiddenTokens);
  await emit([finish]);
  if (plain !== null) {
    let body = plain.body();
    // A plain body contains its usage, so its size depends on the usage. A smaller count may have fewer digits.
    const { completionTokens: possible } = counted(body.length - USAGE_DIGITS);
    if (possible < usage.completion_tokens) {
      Object.assign(usage, usageOf(prompt, possible));
      body = plain.body();
    }
    await options.write(body);
  }
  return { usage, hiddenTokens, finishReason: finish.reason, ...ratesOf(pace, generation) };
}

function promptOf({ requestBytes }: Pick<AnswerOptions, 'requestBytes'>, { started }: Generation): Required<PromptCounts> {
  return signedPrompt(started ?? { promptTokens: 0 }, requestBytes);
}

function ratesOf(pace: ThroughputMeter, { started }: Generation): Pick<Answered, 'decodeTps' | 'prefillTps'> {
  const { promptTokens = 0, cachedTokens = 0 } = started ?? {};
  return { decodeTps: pace.tokensPerSecond(), prefillTps: pace.promptTokensPerSecond(promptTokens - cachedTokens) };
}

/** Called after the filter's end: withheld text may complete a stop sequence. */
function finishEvent(filter: OutputFilter, ended: 'stop' | 'length', usage: Usage, hiddenTokens: number): FinishEvent {
  const { stopSequence } = filter;
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

/** Whether the answer is complete regardless of further text. */
function isDone(filter: OutputFilter, { parallelToolCalls }: TextRequest): boolean {
  return filter.stopped || (!parallelToolCalls && filter.completedToolCalls > 0);
}

/** Number of tokens consumed; fewer than the batch has if the answer completed before its end. */
function pushBatch(filter: OutputFilter, request: TextRequest, batch: readonly Piece[], events: OutputEvent[]): number {
  let tokens = 0;
  for (const piece of batch) {
    if (isDone(filter, request)) break;
    tokens += piece.tokens;
    for (const event of filter.push(piece.text, piece.tokens, piece.logprobs)) events.push(event);
  }
  return tokens;
}

/** JSON contains neither character unescaped, so no part of a constrained output counts as a thought. */
const NO_TAGS: ThinkTags = { open: '\u0001', close: '\u0002' };

function outputFilter({ opened, responseMetadata, thinkTags }: AnswerOptions, generation: Generation): OutputFilter {
  const { stop, tools, toolChoice } = opened.request;
  const mayCall = tools.length > 0 && toolChoice.type !== 'none';
  return new OutputFilter({
    stop,
    startsInsideThinking: generation.started?.startsInsideThinking ?? false,
    logprobs: opened.request.logprobs !== null,
    ...(opened.constraint?.isWhole ? { thinkTags: NO_TAGS } : thinkTags === null ? {} : { thinkTags }),
    ...(mayCall
      ? {
          toolCalls: {
            callId: (index) => callId(opened.answer.callIdPrefix ?? 'call_', responseMetadata.responseId, index),
            onlyAtStart: opened.constraint?.isWhole ?? false,
          },
        }
      : {}),
  });
}

/** Unique among all answers and equal in every rendering of this answer. */
function callId(prefix: string, responseId: string, index: number): string {
  return `${prefix}${sha256Hex(new TextEncoder().encode(`${responseId} ${index}`)).slice(0, 24)}`;
}

/** Batches of the source, and null after each `idleMs` milliseconds of silence. */
async function* orIdle<Batch>(source: AsyncIterable<Batch>, idleMs: number): AsyncGenerator<Batch | null> {
  const batches = source[Symbol.asyncIterator]();
  try {
    let next = batches.next();
    for (;;) {
      const result = await within(next, idleMs);
      if (result === null) {
        yield null;
        continue;
      }
      if (result.done === true) return;
      yield result.value;
      next = batches.next();
    }
  } finally {
    // The promise is not awaited: `return` would wait for a batch that may never come.
    void batches.return?.();
  }
}

async function within<Value>(promise: Promise<Value>, milliseconds: number): Promise<Value | null> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(() => resolve(null), milliseconds);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
