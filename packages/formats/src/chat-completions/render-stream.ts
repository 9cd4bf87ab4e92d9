/**
 * A chat completion as a stream of chunks, in the shape of the real API: a chunk with the role, one per visible piece,
 * one with the finish reason, and the usage chunk for those who asked. What never changes is built once per stream, so
 * that a piece costs one string literal.
 */
import type { Envelope, OutputEvent, SignedParts, StreamRenderer } from '../format.js';
import { SSE_DONE, sseData, sseString } from '../sse.js';
import { chatUsage } from './usage.js';

export class ChatStreamRenderer implements StreamRenderer {
  /** Everything of an event before its choices. */
  readonly #head: string;
  /** `"usage":null` on every chunk but the last, when usage was asked for. */
  readonly #noUsage: string;
  readonly #beforeText: string;
  readonly #afterText: string;
  readonly #includeUsage: boolean;
  #state: 'unopened' | 'open' | 'finished' = 'unopened';

  constructor(envelope: Envelope, includeUsage: boolean) {
    this.#includeUsage = includeUsage;
    this.#head = `data: ${chunkHead(envelope)}`;
    this.#noUsage = includeUsage ? ',"usage":null' : '';
    this.#beforeText = `${this.#head},"choices":[{"index":0,"delta":{"content":`;
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
        return event.text === '' ? '' : `${this.#opening()}${this.#beforeText}${sseString(event.text)}${this.#afterText}`;
      case 'reasoning':
        return '';
      case 'finish': {
        const last = `${this.#opening()}${this.#chunk('{}', `"${event.reason}"`)}`;
        this.#state = 'finished';
        if (!this.#includeUsage) return last;
        return `${last}${this.#head},"choices":[],"usage":${JSON.stringify(chatUsage(event.usage, event.hiddenTokens))}}\n\n`;
      }
      default:
        return event satisfies never;
    }
  }

  /** The chunk with the role, before the first of the others. */
  #opening(): string {
    if (this.#state !== 'unopened') return '';
    this.#state = 'open';
    return this.#chunk('{"role":"assistant","content":"","refusal":null}', 'null');
  }

  #chunk(delta: string, finishReason: string): string {
    return `${this.#head},"choices":[{"index":0,"delta":${delta},"logprobs":null,"finish_reason":${finishReason}}]${this.#noUsage}}\n\n`;
  }
}

/**
 * The signature event, in the shape of a chunk because clients check every event as one, and the terminator.
 * Neither is part of the signed bytes.
 */
export function chatSignatureEvent(envelope: Envelope, signed: SignedParts): string {
  const { signature, responseSha256, receipt, receiptSignature } = signed;
  const members = JSON.stringify({
    choices: [],
    se_signature: signature,
    response_hash: responseSha256,
    receipt,
    receipt_signature: receiptSignature,
  });
  return sseData(`${chunkHead(envelope)},${members.slice(1)}`) + SSE_DONE;
}

/** The members that all chunks share, without the closing brace. */
function chunkHead({ responseId, created, model }: Envelope): string {
  return `{"id":${sseString(responseId)},"object":"chat.completion.chunk","created":${created},"model":${sseString(model)}`;
}
