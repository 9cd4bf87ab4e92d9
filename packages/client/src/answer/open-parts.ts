/** Opens a sealed answer part by part. Every part is authenticated before it is passed on. */
import { E2E_REFUSALS, type E2eAbort, type E2eAnswerOpener, E2eError, type E2eErrorCode, type E2ePart } from '@inference/protocol';
import { chunksOf } from '../network/download.js';
import { type E2ERefusalCode, E2ERefused } from '../refusal.js';

/**
 * Parts in order: head, content, proof. Ends after the final frame and the end of the body. Throws {@link E2ERefused}; an abort by
 * the caller passes through. Leaving the loop cancels the body.
 */
export async function* openParts(
  body: ReadableStream<Uint8Array> | null,
  opener: E2eAnswerOpener,
): AsyncGenerator<E2ePart, void, undefined> {
  try {
    for await (const chunk of chunksOf(body)) {
      const { parts, abort } = opener.push(chunk);
      yield* parts;
      if (abort !== null) throw abortRefusal(abort);
    }
    opener.end();
  } catch (error) {
    throw refusalOf(error);
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
  // No error of an answer: requests are opened by providers.
  return refusal === 'unsealing_failed' ? 'open_failed' : refusal;
}

function isAbort(error: unknown): boolean {
  return error instanceof Error && (error.name === 'AbortError' || error.name === 'TimeoutError');
}
