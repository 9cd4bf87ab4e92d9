/** Error responses as problem details (RFC 9457), for errors of sealed requests that client software handles automatically. */
import { ERRORS } from './error-table.js';
import { type ApiError, errorHeaders, type HttpError } from './errors.js';
import { openAiError } from './open-ai-error.js';

/** Problem type that tells the client to read the keyset again. */
export const STALE_KEY_PROBLEM = 'urn:inference:e2e:stale-key';

/** Error response to a sealed request: problem details for a stale key, otherwise OpenAI's format. */
export function sealedRequestError(error: ApiError): HttpError {
  if (error.code !== 'stale_key') return openAiError(error);
  const { status, code } = ERRORS[error.code];
  return {
    status,
    headers: { ...errorHeaders(error), 'content-type': 'application/problem+json' },
    body: JSON.stringify({ type: STALE_KEY_PROBLEM, title: 'Stale sealing key', status, detail: error.message, code }),
  };
}
