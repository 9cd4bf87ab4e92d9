/** Error responses in OAuth's format: `{error, error_description}` (RFC 6749 section 5.2, RFC 8628 section 3.5). */
import { ERRORS } from './error-table.js';
import { type ApiError, errorHeaders, type HttpError } from './errors.js';

export const OAUTH_ERRORS = [
  'invalid_request',
  'invalid_client',
  'invalid_grant',
  'unsupported_grant_type',
  'authorization_pending',
  'slow_down',
  'access_denied',
  'expired_token',
  'server_error',
  'temporarily_unavailable',
] as const;
export type OAuthErrorCode = (typeof OAUTH_ERRORS)[number];

/** Renders errors that are not specific to OAuth, such as rate limits and restarts. */
export function oauthError(error: ApiError): HttpError {
  const { status } = ERRORS[error.code];
  const code: OAuthErrorCode =
    status === 429 || status === 503 ? 'temporarily_unavailable' : status < 500 ? 'invalid_request' : 'server_error';
  return { status, headers: errorHeaders(error), body: JSON.stringify({ error: code, error_description: error.message }) };
}
