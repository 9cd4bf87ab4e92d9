/** `completionAnswer` returns the renderers for the response to a legacy completion request, streamed or not. */
import { openAiErrorBody } from '../errors/open-ai-error.js';
import type { AnswerFormat, PlainRenderer, ResponseMetadata, SignatureForm, SignedParts, StreamRenderer } from '../format.js';
import { openAiUsage } from '../open-ai-usage.js';
import { choicesRenderer } from '../output/transcript.js';
import type { CompletedFinishReason, OutputEvent, TokenLogprob } from '../output-event.js';
import { signatureComment, signatureMembers } from '../signature.js';
import { SSE_DONE, sseData, sseJson } from '../sse.js';

interface CompletionAnswerOptions {
  readonly includeUsage: boolean;
  readonly logprobs: boolean;
  /** The prompt, repeated at the start of each choice; '' unless the request has `echo`. */
  readonly echo: string;
}

export function completionAnswer(options: CompletionAnswerOptions): AnswerFormat {
  return {
    idPrefix: 'cmpl-',
    terminalEvents: [],
    bodyMember: { name: 'object', value: 'text_completion' },
    stream: (responseMetadata) => new CompletionStreamRenderer(responseMetadata, options),
    plain: (responseMetadata) => completionPlainRenderer(responseMetadata, options),
    signatureEvent,
    streamError: (error) => sseData(openAiErrorBody(error)),
  };
}

function completionPlainRenderer(responseMetadata: ResponseMetadata, options: CompletionAnswerOptions): PlainRenderer {
  return choicesRenderer({ showReasoning: false }, (choices, finish) => ({
    ...head(responseMetadata),
    choices: choices.map(({ transcript: { text, logprobs }, reason }, index) => {
      const shown = options.logprobs ? legacyLogprobs(logprobs, 0) : null;
      return { text: options.echo + text, index, logprobs: shown, finish_reason: finishReasonOf(reason) };
    }),
    usage: openAiUsage(finish),
  }));
}

class CompletionStreamRenderer implements StreamRenderer {
  readonly #head: object;
  readonly #options: CompletionAnswerOptions;
  /** Choices that a `choice_finish` event ended; 0 for a single choice, which only the finish event ends. */
  #finishedChoices = 0;
  /** Length of the choice's tokens with log probabilities so far, in UTF-16 units. */
  #offset = 0;
  /** Echo that has not been sent yet. */
  #echo: string;
  #isFinished = false;

  constructor(responseMetadata: ResponseMetadata, options: CompletionAnswerOptions) {
    this.#head = head(responseMetadata);
    this.#options = options;
    this.#echo = options.echo;
  }

  render(...events: readonly OutputEvent[]): string {
    let rendered = '';
    for (const event of events) rendered += this.#event(event);
    return rendered;
  }

  #event(event: OutputEvent): string {
    if (this.#isFinished) throw new Error('an event after the finish event');
    switch (event.type) {
      case 'text': {
        const { text, logprobs } = event;
        if (text === '' && logprobs === undefined) return '';
        const shown = this.#options.logprobs && logprobs !== undefined ? legacyLogprobs(logprobs, this.#offset) : null;
        this.#offset += logprobs?.reduce((length, { token }) => length + token.length, 0) ?? 0;
        return this.#echoText() + this.#chunk(text, shown);
      }
      case 'choice_finish': {
        const last = this.#lastChunk(event.reason);
        this.#finishedChoices++;
        this.#offset = 0;
        this.#echo = this.#options.echo;
        return last;
      }
      case 'finish': {
        this.#isFinished = true;
        const last = this.#finishedChoices > 0 ? '' : this.#lastChunk(event.reason);
        return this.#options.includeUsage ? last + sseData(sseJson({ ...this.#head, choices: [], usage: openAiUsage(event) })) : last;
      }
      case 'start':
      case 'reasoning':
      case 'ping':
      // This format has no tools, so the output filter leaves calls in the text.
      case 'tool_call_start':
      case 'tool_call_arguments':
        return '';
      default:
        return event satisfies never;
    }
  }

  /** Chunk with the echo. Sent with the first generated text, so that the echo is not mistaken for the first token. */
  #echoText(): string {
    if (this.#echo === '') return '';
    const text = this.#echo;
    this.#echo = '';
    return this.#chunk(text);
  }

  #lastChunk(reason: CompletedFinishReason): string {
    return this.#echoText() + this.#chunk('', null, finishReasonOf(reason));
  }

  /** The text comes twice: as `text`, which clients of this format read, and as `delta` as in chat completions. */
  #chunk(text: string, logprobs: object | null = null, finishReason: 'stop' | 'length' | null = null): string {
    const delta = text === '' ? {} : { content: text };
    const choices = [{ text, index: this.#finishedChoices, delta, logprobs, finish_reason: finishReason }];
    return sseData(sseJson({ ...this.#head, choices, ...(this.#options.includeUsage ? { usage: null } : {}) }));
  }
}

/** Signature and terminator of a stream. The event has the members of a chunk, because clients validate every event as a chunk. */
function signatureEvent(responseMetadata: ResponseMetadata, signed: SignedParts, form: SignatureForm = 'event'): string {
  if (form === 'comment') return signatureComment(signed) + SSE_DONE;
  return sseData(sseJson({ ...head(responseMetadata), choices: [], ...signatureMembers(signed) })) + SSE_DONE;
}

function head({ responseId, created, model, systemFingerprint }: ResponseMetadata) {
  const fingerprint = systemFingerprint === undefined ? {} : { system_fingerprint: systemFingerprint };
  return { id: responseId, object: 'text_completion', created, model, ...fingerprint };
}

/** The format has no tool calls, so `tool_calls` becomes `stop`. */
function finishReasonOf(reason: CompletedFinishReason): 'stop' | 'length' {
  return reason === 'length' ? 'length' : 'stop';
}

/** Log probabilities in the legacy format. `offset`: length of the text before the first token, in UTF-16 units. */
function legacyLogprobs(logprobs: readonly TokenLogprob[], offset: number) {
  let next = offset;
  return {
    tokens: logprobs.map(({ token }) => token),
    token_logprobs: logprobs.map(({ logprob }) => logprob),
    top_logprobs: logprobs.map((each) => Object.fromEntries(each.top_logprobs.map(({ token, logprob }) => [token, logprob]))),
    text_offset: logprobs.map(({ token }) => {
      const start = next;
      next += token.length;
      return start;
    }),
  };
}
