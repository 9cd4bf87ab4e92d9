/**
 * Checks of requests to the routes of auth-routes.ts before better-auth, the sign-in library, gets them. `headerError` and `inputError`
 * return the error or null.
 */
import { type ApiError, apiError, readJsonBody } from '@inference/formats';
import { isName } from '@inference/protocol';
import type { FastifyRequest } from 'fastify';
import { isMutation } from '../plugins/console-api.js';
import { consoleOrigin, hasBearer, isCrossOrigin, isJson } from '../plugins/console-origin.js';
import { bytesOf } from '../plugins/request-bodies.js';
import { type AuthRoute, MAX_LENGTHS } from './auth-routes.js';

interface ConsoleSetup {
  /** Configured origin of the console, or null. */
  readonly publicOrigin: string | null;
  readonly canSendMail: boolean;
}

/** Checks what is known before the body is read. */
export function headerError({ publicOrigin, canSendMail }: ConsoleSetup, route: AuthRoute, request: FastifyRequest): ApiError | null {
  const origin = consoleOrigin(request, publicOrigin);
  if (origin === null) return apiError('cross_origin', { message: 'The console is not served under this name. Set PUBLIC_URL.' });
  if (isMutation(request)) {
    if (!hasBearer(request) && isCrossOrigin(request, origin)) return apiError('cross_origin');
    if (!isJson(request)) return apiError('not_json');
  }
  if (route.mailAnswer !== undefined && !canSendMail) return apiError('not_configured', { message: 'This coordinator cannot send mail.' });
  return null;
}

/** Checks the path and the members of the body. */
export function inputError(route: AuthRoute, request: FastifyRequest, origin: string): ApiError | null {
  if (!isCanonicalPath(request, origin)) return apiError('not_found');
  if (route.needsPassword && textMember(request, 'password') === null) {
    return apiError('invalid_request', { param: 'password', message: 'password is required.' });
  }
  for (const [name, max] of Object.entries(MAX_LENGTHS)) {
    if ((textMember(request, name)?.length ?? 0) > max) {
      return apiError('invalid_request', { param: name, message: `${name} must be at most ${max} characters long.` });
    }
  }
  if (!isName(textMember(request, 'name') ?? '')) {
    const message = 'name must not contain line breaks or other control characters.';
    return apiError('invalid_request', { param: 'name', message });
  }
  for (const name of ['callbackURL', 'redirectTo']) {
    if (isUnsafePath(textMember(request, name), origin)) {
      return apiError('invalid_request', { param: name, message: `${name} must be a path of the console of at most 200 characters.` });
    }
  }
  return null;
}

const PATH = /^\/[A-Za-z0-9/_.~?=&-]{0,199}$/;

/** Whether a link target is a path of the console with unusual characters. False for other URLs, which better-auth checks. */
function isUnsafePath(address: string | null, origin: string): boolean {
  if (address === null) return false;
  const path = address.startsWith(`${origin}/`) ? address.slice(origin.length) : address;
  return path.startsWith('/') && !PATH.test(path);
}

/** String member of a JSON body. Null if absent or no string: better-auth reports such errors. */
export function textMember(request: FastifyRequest, name: string): string | null {
  const body = bytesOf(request);
  if (!isJson(request) || body.length === 0) return null;
  const value = readJsonBody(body);
  if (typeof value !== 'object' || value === null) return null;
  const member = (value as Readonly<Record<string, unknown>>)[name];
  return typeof member === 'string' ? member : null;
}

/** Whether URL parsing leaves the path unchanged. Otherwise `..` or backslashes could reach a route of better-auth that is not listed. */
function isCanonicalPath({ url }: FastifyRequest, origin: string): boolean {
  return new URL(origin + url).pathname === url.split('?', 1)[0];
}
