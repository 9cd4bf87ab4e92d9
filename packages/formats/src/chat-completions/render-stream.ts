/** `ChatStreamRenderer` renders a chat completion as SSE chunks. Constant parts are built once, so each text delta is cheap. */
import type { ResponseMetadata, SignatureForm, SignedParts, StreamRenderer } from '../format.js';
import { openAiUsage } from '../open-ai-usage.js';
import type { CompletedFinishReason, OutputEvent } from '../output-event.js';
import { signatureComment, signatureMembers } from '../signature.js';
import { SSE_DONE, sseData, sseJson } from '../sse.js';

/** Parameters of a chat completion request that affect the rendering of its response. */
export interface ChatAnswerOptions {
  /** The client requested a usage chunk at the end of the stream. */
  readonly includeUsage: boolean;
  /** Think segments are rendered as `reasoning_content`. */
  readonly showReasoning: boolean;
  readonly logprobs: boolean;
  /** The request has `service_tier`. The response then has `default`, the only tier. */
  readonly reportsServiceTier: boolean;
  /** The request has `functions`, so a call is rendered as `function_call`. */
  readonly legacyFunctions: boolean;
}

/** OpenAI's name of the tier without special terms. */
export const SERVICE_TIER = 'default';

export function finishReasonOf(reason: CompletedFinishReason, { legacyFunctions }: Pick<ChatAnswerOptions, 'legacyFunctions'>) {
  return legacyFunctions && reason === 'tool_calls' ? 'function_call' : reason;
}

export class ChatStreamRenderer implements StreamRenderer {
  /** `data: ` and the JSON of a chunk before its choices. */
  readonly #head: string;
  /** `,"usage":null`, which every chunk before the usage chunk contains; empty if no usage was requested. */
  readonly #noUsage: string;
  /** JSON of a text chunk after its text. */
  readonly #afterText: string;
  readonly #options: ChatAnswerOptions;
  /** `data: ` and the JSON of a chunk before the delta of the current choice. */
  #beforeDelta = '';
  /** `data: ` and the JSON of a text chunk of the current choice before its text. */
  #beforeText = '';
  /** Number of choices ended by a `choice_finish` event. Stays 0 in an answer with a single choice, which the `finish` event ends. */
  #finishedChoices = 0;
  #state: 'unopened' | 'open' | 'finished' = 'unopened';

  constructor(responseMetadata: ResponseMetadata, options: ChatAnswerOptions) {
    this.#options = options;
    const tier = options.reportsServiceTier ? `,"service_tier":"${SERVICE_TIER}"` : '';
    this.#head = `data: ${chunkHead(responseMetadata)}${tier}`;
    this.#noUsage = options.includeUsage ? ',"usage":null' : '';
    this.#openChoice();
    this.#afterText = `},"logprobs":null,"finish_reason":null}]${this.#noUsage}}\n\n`;
  }

  render(...events: readonly OutputEvent[]): string {
    let rendered = '';
    for (const event of events) rendered += this.#event(event);
    return rendered;
  }

  #event(event: OutputEvent): string {
    if (this.#state === 'finished') throw new Error('an event after the finish event');
    switch (event.type) {
      case 'text':
        return this.#text(event);
      case 'reasoning':
        if (!this.#options.showReasoning || event.text === '') return '';
        return `${this.#opening('""')}${this.#chunk(`{"reasoning_content":${sseJson(event.text)}}`)}`;
      case 'tool_call_start': {
        const named = { name: event.name, arguments: '' };
        if (this.#options.legacyFunctions) return `${this.#opening('null')}${this.#chunk(sseJson({ function_call: named }))}`;
        const call = { index: event.index, id: event.id, type: 'function', function: named };
        return `${this.#opening('null')}${this.#chunk(sseJson({ tool_calls: [call] }))}`;
      }
      case 'tool_call_arguments': {
        if (event.delta === '') return '';
        if (this.#options.legacyFunctions) return this.#chunk(sseJson({ function_call: { arguments: event.delta } }));
        const call = { index: event.index, function: { arguments: event.delta } };
        return this.#chunk(sseJson({ tool_calls: [call] }));
      }
      case 'choice_finish': {
        const last = this.#lastChunk(event.reason);
        this.#finishedChoices++;
        this.#openChoice();
        return last;
      }
      case 'finish': {
        const last = this.#finishedChoices > 0 ? '' : this.#lastChunk(event.reason);
        this.#state = 'finished';
        if (!this.#options.includeUsage) return last;
        return `${last}${this.#head},"choices":[],"usage":${JSON.stringify(openAiUsage(event))}}\n\n`;
      }
      case 'start':
      case 'ping':
        return '';
      default:
        return event satisfies never;
    }
  }

  #text({ text, logprobs }: OutputEvent & { type: 'text' }): string {
    if (this.#options.logprobs && logprobs !== undefined) {
      const shown = `{"content":${sseJson(logprobs)},"refusal":null}`;
      return `${this.#opening('""')}${this.#chunk(`{"content":${sseJson(text)}}`, 'null', shown)}`;
    }
    return text === '' ? '' : `${this.#opening('""')}${this.#beforeText}${sseJson(text)}${this.#afterText}`;
  }

  #openChoice(): void {
    this.#state = 'unopened';
    this.#beforeDelta = `${this.#head},"choices":[{"index":${this.#finishedChoices},"delta":`;
    this.#beforeText = `${this.#beforeDelta}{"content":`;
  }

  #lastChunk(reason: CompletedFinishReason): string {
    return `${this.#opening('""')}${this.#chunk('{}', `"${finishReasonOf(reason, this.#options)}"`)}`;
  }

  /** The chunk with the role, which begins each choice. Empty if the choice has begun. */
  #opening(content: '""' | 'null'): string {
    if (this.#state !== 'unopened') return '';
    this.#state = 'open';
    return this.#chunk(`{"role":"assistant","content":${content},"refusal":null}`);
  }

  #chunk(delta: string, finishReason = 'null', logprobs = 'null'): string {
    return `${this.#beforeDelta}${delta},"logprobs":${logprobs},"finish_reason":${finishReason}}]${this.#noUsage}}\n\n`;
  }
}

/**
 * Signature of the rendered bytes, and terminator of the stream.
 *
 * Form `event` is a chunk without choices, because clients validate every event as a chunk. Form `comment` is for clients that expect a
 * choice in every event.
 */
export function chatSignatureEvent(responseMetadata: ResponseMetadata, signed: SignedParts, form: SignatureForm = 'event'): string {
  if (form === 'comment') return signatureComment(signed) + SSE_DONE;
  const members = JSON.stringify({ choices: [], ...signatureMembers(signed) });
  return sseData(`${chunkHead(responseMetadata)},${members.slice(1)}`) + SSE_DONE;
}

/** JSON of the members that all chunks share, without the closing brace. */
function chunkHead({ responseId, created, model, systemFingerprint }: ResponseMetadata): string {
  const fingerprint = systemFingerprint === undefined ? '' : `,"system_fingerprint":${sseJson(systemFingerprint)}`;
  return `{"id":${sseJson(responseId)},"object":"chat.completion.chunk","created":${created},"model":${sseJson(model)}${fingerprint}`;
}
