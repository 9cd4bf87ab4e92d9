/** Tells the console's origin (RFC 6454), and whether a page of another origin sent a request, against cross-site request forgery. */
import type { FastifyRequest } from 'fastify';

/** `localhost`, `127.0.0.1:8080`, `[::1]:8080`, …: names that no remote host can claim. */
const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/i;

/** Origin of the console: `publicOrigin`, else the request's `Host` if that is a loopback address, else null. */
export function consoleOrigin(request: FastifyRequest, publicOrigin: string | null): string | null {
  if (publicOrigin !== null) return publicOrigin;
  const { host } = request.headers;
  return host !== undefined && LOOPBACK.test(host) ? `http://${host.toLowerCase()}` : null;
}

/** Whether a page of another origin may have sent the request. True also if a request with cookies does not state its origin. */
export function isCrossOrigin(request: FastifyRequest, origin: string): boolean {
  const { origin: given, cookie } = request.headers;
  const site = request.headers['sec-fetch-site'];
  if (given !== undefined) return given.toLowerCase() !== origin;
  if (site !== undefined) return site !== 'same-origin';
  return cookie !== undefined;
}

export function isJson(request: FastifyRequest): boolean {
  return /^application\/json\s*(?:;|$)/i.test(request.headers['content-type'] ?? '');
}

/** Whether the request has a bearer token. Browsers never attach one by themselves, unlike cookies. */
export function hasBearer(request: FastifyRequest): boolean {
  return /^Bearer +\S/i.test(request.headers.authorization ?? '');
}
