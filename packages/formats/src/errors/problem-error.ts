/** Problem details (RFC 9457), for errors that end-to-end clients act on by program. */
import { ERRORS } from './error-table.js';
import { type ApiError, errorHeaders, type HttpError } from './errors.js';
import { openAiError } from './open-ai-error.js';

/** Type of the problem that a client solves by reading the keyset again. */
export const STALE_KEY_PROBLEM = 'urn:inference:e2e:stale-key';

/** Response to a sealed request: problem details for a stale key, else the OpenAI format. */
export function sealedRequestError(error: ApiError): HttpError {
  if (error.code !== 'stale_key') return openAiError(error);
  const { status, code } = ERRORS[error.code];
  return {
    status,
    headers: { ...errorHeaders(error), 'content-type': 'application/problem+json' },
    body: JSON.stringify({ type: STALE_KEY_PROBLEM, title: 'Stale sealing key', status, detail: error.message, code }),
  };
}
