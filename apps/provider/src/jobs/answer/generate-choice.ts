/** `generateChoice` generates one choice (alternative) of an answer, as output events, and checks the output against its constraint. */
import {
  type CompletedFinishReason,
  imagesOfRequest,
  type OutputEvent,
  OutputFilter,
  type TextRequest,
  Transcript,
  textBytesOf,
} from '@inference/formats';
import { withTimeLimit } from '@inference/protocol';
import { sha256Hex } from '@inference/protocol/crypto';
import { type Generation, GenerationError, type Piece } from '../../engine/generation.js';
import type { ThinkTags } from '../../models/think-tags.js';
import { fieldNames } from '../field-names.js';
import { JobError } from '../job-error.js';
import type { AnswerOptions } from './answer-text.js';
import type { Computation } from './computed-by.js';
import { failureOf } from './engine-failure.js';
import { generationRequest } from './generation-request.js';
import { type OutputCounts, type PromptCounts, signedPrompt } from './signed-usage.js';

export interface GeneratedChoice {
  readonly prompt: Required<PromptCounts>;
  readonly counts: OutputCounts;
  /** Null if the choice was ended early by `closing`. */
  readonly finish: { readonly reason: CompletedFinishReason; readonly stopSequence?: string } | null;
  readonly computation: Computation;
  /** Decode tokens per second; null if not measured. */
  readonly decodeTps: number | null;
  /** Prefill tokens per second of the uncached part of the prompt; null if not measured. */
  readonly prefillTps: number | null;
}

type Emit = (events: readonly OutputEvent[]) => Promise<void>;

/** Maximum generations of a choice whose output violates its constraint. The grammar already prevents most violations. */
const MAX_GENERATIONS = 3;

class ConstraintViolation extends Error {}

/**
 * Passes the events of choice `index` to `emit`; the first choice begins with the `start` event. Without streaming, generates a choice
 * again that violates its constraint. Throws {@link JobError}, or the signal's reason once aborted.
 */
export async function generateChoice(options: AnswerOptions, index: number, emit: Emit): Promise<GeneratedChoice> {
  const { stream } = options.parsed.request;
  for (let repetition = 0; ; repetition++) {
    // Without streaming, events are emitted once the output has passed its check.
    const events: OutputEvent[] = [];
    const collect: Emit = async (more) => void events.push(...more);
    try {
      const choice = await generateOnce(options, { index, repetition }, stream ? emit : collect);
      await emit(events);
      return choice;
    } catch (error) {
      if (!(error instanceof ConstraintViolation)) throw error;
      if (stream || repetition + 1 === MAX_GENERATIONS) throw new JobError('engine_failed');
    }
  }
}

interface ChoiceGeneration {
  readonly index: number;
  /** Number of earlier generations of the choice. */
  readonly repetition: number;
}

async function generateOnce(options: AnswerOptions, { index, repetition }: ChoiceGeneration, emit: Emit): Promise<GeneratedChoice> {
  const { parsed, signal, closing } = options;
  signal.throwIfAborted();
  const { choices, task } = parsed.request;
  const request = generationRequest(parsed.request, options, parsed.constraint, repetition * choices + index);
  const generation = options.generate(request);
  const cancel = () => generation.cancel();
  signal.addEventListener('abort', cancel, { once: true });
  closing.addEventListener('abort', cancel, { once: true });
  try {
    const computation = { usedTemplate: request.prompt.type === 'chat', sampling: task === 'count' ? null : request.sampling };
    return { computation, ...(await filterOutput(options, generation, index, emit)) };
  } catch (error) {
    signal.throwIfAborted();
    throw error instanceof GenerationError ? failureOf(error, fieldNames(parsed)) : error;
  } finally {
    signal.removeEventListener('abort', cancel);
    closing.removeEventListener('abort', cancel);
    generation.cancel();
  }
}

async function filterOutput(
  options: AnswerOptions,
  generation: Generation,
  index: number,
  emit: Emit,
): Promise<Omit<GeneratedChoice, 'computation'>> {
  const { signal, closing } = options;
  const { request, constraint } = options.parsed;
  const transcript = constraint === null ? null : new Transcript({ showReasoning: false });
  const emitAndRecord: Emit = async (events) => {
    for (const event of events) transcript?.add(event);
    await emit(events);
  };
  let filter: OutputFilter | null = null;
  const begin = async () => {
    const { promptTokens, cachedTokens } = promptOf(options, generation);
    if (index === 0) await emitAndRecord([{ type: 'start', promptTokens, ...(cachedTokens === 0 ? {} : { cachedTokens }) }]);
    return outputFilter(options, generation, index);
  };
  let completionTokens = 0;
  for await (const batch of orIdle(generation, options.pingAfterMs)) {
    signal.throwIfAborted();
    if (closing.aborted) break;
    // No ping before the engine reports the start: the response begins with the prompt's token count.
    if (batch === null && generation.started === null) continue;
    filter ??= await begin();
    const events: OutputEvent[] = batch === null ? [{ type: 'ping' }] : [];
    if (batch !== null) completionTokens += pushBatch(filter, request, batch, events);
    await emitAndRecord(events);
    signal.throwIfAborted();
    if (isDone(filter, request)) break;
  }
  const result = () => ({
    prompt: promptOf(options, generation),
    counts: { completionTokens, hiddenTokens: filter?.hiddenTokens ?? 0 },
    decodeTps: generation.decodeTps,
    prefillTps: generation.prefillTps,
  });
  if (closing.aborted) return { finish: null, ...result() };
  const ended = filter !== null && isDone(filter, request) ? 'stop' : generation.outcome().reason;
  filter ??= await begin();
  await emitAndRecord(filter.end());
  const endedByModel = ended === 'stop' && filter.stopSequence === null;
  if (
    endedByModel &&
    transcript !== null &&
    constraint !== null &&
    !(await constraint.fits({ text: transcript.text, calls: transcript.toolCalls }))
  )
    throw new ConstraintViolation();
  return { finish: finishOf(filter, ended), ...result() };
}

function promptOf({ parsed, requestBytes, maxImageTokens }: AnswerOptions, { started }: Generation): Required<PromptCounts> {
  const { request } = parsed;
  const imageTokens = imagesOfRequest(request).length * (maxImageTokens ?? 0);
  return signedPrompt(started ?? { promptTokens: 0 }, textBytesOf(request, requestBytes), imageTokens);
}

/** Call after `filter.end()`, because withheld text may complete a stop sequence. */
function finishOf(filter: OutputFilter, ended: 'stop' | 'length'): NonNullable<GeneratedChoice['finish']> {
  const { stopSequence } = filter;
  const called = stopSequence === null && ended === 'stop' && filter.startedToolCalls > 0;
  return {
    reason: called ? 'tool_calls' : stopSequence === null ? ended : 'stop',
    ...(stopSequence === null ? {} : { stopSequence }),
  };
}

/** Whether the choice is complete regardless of further text. */
function isDone(filter: OutputFilter, { parallelToolCalls }: TextRequest): boolean {
  return filter.stopped || (!parallelToolCalls && filter.completedToolCalls > 0);
}

/** Adds a batch's events to `events`. Returns the number of consumed tokens: fewer than the batch has if the choice completes early. */
function pushBatch(filter: OutputFilter, request: TextRequest, batch: readonly Piece[], events: OutputEvent[]): number {
  let tokens = 0;
  for (const piece of batch) {
    if (isDone(filter, request)) break;
    tokens += piece.tokens;
    for (const event of filter.push(piece.text, piece.tokens, piece.logprobs)) events.push(event);
  }
  return tokens;
}

/** Control characters that JSON cannot contain, so that the filter finds no think section in constrained output. */
const NO_TAGS: ThinkTags = { open: '\u0001', close: '\u0002' };

function outputFilter({ parsed, responseMetadata, thinkTags }: AnswerOptions, generation: Generation, index: number): OutputFilter {
  const { stop, tools, toolChoice } = parsed.request;
  const mayCall = tools.length > 0 && toolChoice.type !== 'none';
  const scope = index === 0 ? responseMetadata.responseId : `${responseMetadata.responseId} choice ${index}`;
  return new OutputFilter({
    stop,
    startsInsideThinking: generation.started?.startsInsideThinking ?? false,
    logprobs: parsed.request.logprobs !== null,
    ...(parsed.constraint?.coversWholeOutput ? { thinkTags: NO_TAGS } : thinkTags === null ? {} : { thinkTags }),
    ...(mayCall
      ? {
          toolCalls: {
            callId: (call) => callId(parsed.answer.callIdPrefix ?? 'call_', scope, call),
            onlyAtStart: parsed.constraint?.coversWholeOutput ?? false,
          },
        }
      : {}),
  });
}

/** Id of a tool call: unique among all choices of all answers, and the same if this answer is generated again. */
function callId(prefix: string, scope: string, index: number): string {
  return `${prefix}${sha256Hex(new TextEncoder().encode(`${scope} ${index}`)).slice(0, 24)}`;
}

/** Yields the batches of the source, and null after each `idleMs` milliseconds of silence. */
async function* orIdle<Batch>(source: AsyncIterable<Batch>, idleMs: number): AsyncGenerator<Batch | null> {
  const batches = source[Symbol.asyncIterator]();
  try {
    let next = batches.next();
    for (;;) {
      const result = await withTimeLimit(next, idleMs);
      if (result === 'late') {
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
