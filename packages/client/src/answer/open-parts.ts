/** Opens a sealed answer part by part. Every part is authenticated before the caller gets it. */
import { E2E_REFUSALS, type E2eAbort, type E2eAnswerOpener, E2eError, type E2eErrorCode, type E2ePart } from '@inference/protocol';
import { type E2ERefusalCode, E2ERefused } from '../refusal.js';

/**
 * Iterates over the parts: head, content, proof. Not an async generator, which would add microtask turns to every frame.
 *
 * Leaving a loop over the parts cancels the body. `next` rejects with {@link E2ERefused} or the caller's abort
 * reason, and repeats that rejection from then on.
 */
export class OpenedParts implements AsyncIterableIterator<E2ePart, void, undefined> {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array> | null;
  readonly #opener: E2eAnswerOpener;
  /** Parts of the newest chunk. */
  #parts: readonly E2ePart[] = [];
  /** Index in `#parts` of the next part. */
  #next = 0;
  #abort: E2eAbort | null = null;
  #isDone = false;
  #failure: { readonly reason: unknown } | null = null;

  /** Locks `body`, the body of the response. */
  constructor(body: ReadableStream<Uint8Array> | null, opener: E2eAnswerOpener) {
    this.#reader = body?.getReader() ?? null;
    this.#opener = opener;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<E2ePart, void>> {
    if (this.#failure !== null) throw this.#failure.reason;
    try {
      for (;;) {
        const part = this.#parts[this.#next];
        if (part !== undefined) {
          this.#next++;
          return { done: false, value: part };
        }
        if (this.#abort !== null) throw abortRefusal(this.#abort);
        if (this.#isDone) return { done: true, value: undefined };
        await this.#read();
      }
    } catch (error) {
      this.#failure = { reason: refusalOf(error) };
      await this.#cancel();
      throw this.#failure.reason;
    }
  }

  async return(): Promise<IteratorResult<E2ePart, void>> {
    await this.#cancel();
    return { done: true, value: undefined };
  }

  async #read(): Promise<void> {
    const chunk = await this.#reader?.read();
    if (chunk?.value === undefined) {
      this.#opener.end();
      this.#isDone = true;
      this.#reader?.releaseLock();
      return;
    }
    const { parts, abort } = this.#opener.push(chunk.value);
    this.#parts = parts;
    this.#next = 0;
    this.#abort = abort;
  }

  async #cancel(): Promise<void> {
    if (this.#isDone) return;
    this.#isDone = true;
    this.#parts = [];
    await this.#reader?.cancel().catch(() => {});
    this.#reader?.releaseLock();
  }
}

function abortRefusal({ status, code, message }: E2eAbort): E2ERefused {
  return new E2ERefused('coordinator_said', `The coordinator ended the answer (${code}, not authenticated): ${message}`, status);
}

function refusalOf(error: unknown): unknown {
  if (error instanceof E2ERefused || isAbort(error)) return error;
  if (!(error instanceof E2eError)) {
    return new E2ERefused('truncated', 'The connection broke before the end of the answer.', null, { cause: error });
  }
  return new E2ERefused(codeOf(error.code), `The sealed answer is refused: ${error.message}.`, null, { cause: error });
}

function codeOf(code: E2eErrorCode): E2ERefusalCode {
  const refusal = E2E_REFUSALS[code];
  // `unsealing_failed` concerns requests, which only providers open.
  return refusal === 'unsealing_failed' ? 'open_failed' : refusal;
}

function isAbort(error: unknown): boolean {
  return error instanceof Error && (error.name === 'AbortError' || error.name === 'TimeoutError');
}
