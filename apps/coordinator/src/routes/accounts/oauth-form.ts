/** How the addresses of OAuth take their parameters: as a form, each at most once (RFC 6749 sections 3.1 and 3.2). */
import type { OAuthErrorCode } from '@inference/formats';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { bytesOf } from '../plugins/body-bytes.js';

export const MAX_FORM_BYTES = 8 * 1024;

export class OAuthError extends Error {
  constructor(
    readonly code: OAuthErrorCode,
    message: string,
  ) {
    super(message);
    this.name = 'OAuthError';
  }
}

/** Reads a form. Throws {@link OAuthError}. */
export function readForm(request: FastifyRequest): ReadonlyMap<string, string> {
  if (!/^application\/x-www-form-urlencoded\s*(?:;|$)/i.test(request.headers['content-type'] ?? '')) {
    throw new OAuthError('invalid_request', 'The body must be application/x-www-form-urlencoded.');
  }
  const form = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(textOf(bytesOf(request)))) {
    if (form.has(name)) throw new OAuthError('invalid_request', 'A parameter was sent twice.');
    // Parameters without a value are treated as if they had been left out.
    if (value !== '') form.set(name, value);
  }
  return form;
}

/** A parameter that must be there. Throws {@link OAuthError}. */
export function parameter(form: ReadonlyMap<string, string>, name: string): string {
  const value = form.get(name);
  if (value === undefined) throw new OAuthError('invalid_request', `The parameter ${name} is missing.`);
  return value;
}

export function sendOAuthError(reply: FastifyReply, error: OAuthError): FastifyReply {
  return reply.code(400).send({ error: error.code, error_description: error.message });
}

function textOf(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new OAuthError('invalid_request', 'The body is not UTF-8.');
  }
}
