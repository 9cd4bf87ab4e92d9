/** `answerText` generates the choices of a text request, or counts its tokens, and writes the response in the client's format. */
import { type FinishEvent, imagesOfRequest, type OutputEvent, type ResponseMetadata } from '@inference/formats';
import type { FinishReason, Usage } from '@inference/protocol';
import type { Generation } from '../../engine/generation.js';
import type { GenerationRequest } from '../../engine/messages.js';
import type { ThinkTags } from '../../models/think-tags.js';
import { fieldNames } from '../field-names.js';
import { JobError } from '../job-error.js';
import type { ConstrainedRequest } from '../prepared-request.js';
import type { Computation } from './computed-by.js';
import { requireDeliverable } from './deliverable.js';
import { type GeneratedChoice, generateChoice } from './generate-choice.js';
import { type OutputCounts, signedOutput, usageOf } from './signed-usage.js';

export interface AnswerOptions {
  readonly parsed: ConstrainedRequest;
  readonly responseMetadata: ResponseMetadata;
  /** Maximum tokens of each choice. */
  readonly maxTokens: number;
  /** Requests with the same cache scope share cached prompt prefixes. Null shares nothing. */
  readonly cacheScope: string | null;
  readonly thinkTags: ThinkTags | null;
  /** Whether the model writes think sections, as in its offer. Null if unknown. */
  readonly thinks: boolean | null;
  /** Maximum prompt tokens of one image. Null if the model takes no images. */
  readonly maxImageTokens: number | null;
  readonly requestBytes: number;
  readonly generate: (request: GenerationRequest) => Generation;
  /** Resolves when the reader has room for more. */
  readonly write: (text: string) => Promise<void>;
  /** Silence after which a stream sends a ping, in milliseconds. */
  readonly pingAfterMs: number;
  /** Aborted to end a stream early: the text written so far becomes the signed answer. */
  readonly closing: AbortSignal;
  /** Aborted to stop the job, with the error as the reason. */
  readonly signal: AbortSignal;
}

export interface AnswerSummary {
  readonly usage: Usage;
  /** Tokens of think sections that were removed from the answer. */
  readonly hiddenTokens: number;
  readonly finishReason: FinishReason;
  readonly computation: Computation;
  /** Decode tokens per second of the first choice; null if not measured. */
  readonly decodeTps: number | null;
  /** Prefill tokens per second of the prompt's uncached part; null if not measured, absent for embeddings and images. */
  readonly prefillTps?: number | null;
  /** Hexadecimal SHA-256 of each image, in order. */
  readonly imageSha256?: readonly string[];
}

/** Maximum digits of all counts in a usage together. */
const USAGE_DIGITS = 32;

/** Generates the choices one after another, because a job has one slot. Throws {@link JobError}, or the signal's reason once aborted. */
export async function answerText(options: AnswerOptions): Promise<AnswerSummary> {
  const { parsed, responseMetadata } = options;
  rejectImages(parsed.request, options.maxImageTokens);
  const { request } = parsed;
  const stream = request.stream ? parsed.answer.stream(responseMetadata) : null;
  const plain = request.stream ? null : parsed.answer.plain(responseMetadata);
  /** UTF-16 units written: a lower bound of the bytes. */
  let written = 0;
  const emit = async (events: readonly OutputEvent[]) => {
    plain?.add(...events);
    if (stream === null) return;
    const text = stream.render(...events);
    written += text.length;
    await options.write(text);
  };
  const first = await generateChoice(options, 0, emit);
  const choices: GeneratedChoice[] = [first];
  // A choice without `finish` was ended early.
  let isCancelled = first.finish === null;
  while (!isCancelled && request.choices > 1) {
    const { finish } = choices.at(-1) ?? first;
    if (finish !== null) await emit([{ type: 'choice_finish', ...finish }]);
    if (finish !== null && choices.length === request.choices) break;
    isCancelled = finish === null || options.closing.aborted;
    if (!isCancelled) choices.push(await generateChoice(options, choices.length, emit));
  }
  const total = {
    completionTokens: sum(choices, ({ counts }) => counts.completionTokens),
    hiddenTokens: sum(choices, ({ counts }) => counts.hiddenTokens),
  };
  const countsFor = (answerBytes: number): OutputCounts => signedOutput(total, { thinks: options.thinks, answerBytes });
  // The prompt is billed once: further choices read the prefix cache, or recompute the prompt at the provider's expense.
  const { prompt, computation, decodeTps, prefillTps } = first;
  const { hiddenTokens, completionTokens } = countsFor(plain === null || isCancelled ? written : Number.POSITIVE_INFINITY);
  const usage = usageOf(prompt, completionTokens);
  const summary = { usage, hiddenTokens, computation, decodeTps, prefillTps };
  if (isCancelled) return { ...summary, finishReason: 'cancelled' };
  const finish = finishEvent(choices, usage, hiddenTokens);
  await emit([finish]);
  if (plain !== null) {
    let body = plain.body();
    // The size of the body bounds the count, and the body contains the count. A lower count is never longer.
    const { completionTokens: possible } = countsFor(body.length - USAGE_DIGITS);
    if (possible < usage.completion_tokens) {
      Object.assign(usage, usageOf(prompt, possible));
      body = plain.body();
    }
    requireDeliverable(body, fieldNames(parsed).maxTokens);
    await options.write(body);
  }
  return { ...summary, finishReason: finish.reason };
}

/** Throws {@link JobError} for a request with images if the model takes none. */
function rejectImages(request: ConstrainedRequest['request'], maxImageTokens: number | null): void {
  const [image] = imagesOfRequest(request);
  if (image !== undefined && maxImageTokens === null) throw new JobError('unsupported', { param: image.field });
}

/** If the token limit ended any choice, the finish reason of the whole answer is `length`. */
function finishEvent(choices: readonly GeneratedChoice[], usage: Usage, hiddenTokens: number): FinishEvent {
  const ends = choices.flatMap(({ finish }) => finish ?? []);
  const end = ends.find(({ reason }) => reason === 'length') ?? ends[0];
  if (end === undefined) throw new Error('no choice has finished');
  return { type: 'finish', ...end, usage, hiddenTokens, completedAt: Math.floor(Date.now() / 1000) };
}

function sum<Item>(items: readonly Item[], of: (item: Item) => number): number {
  return items.reduce((total, item) => total + of(item), 0);
}
