/**
 * Where the console lives, and whether a request comes from a page of it. Cookies go along with requests of any site, so
 * what changes something is taken only from our own pages (Origin header, RFC 6454) or with a bearer token instead of cookies.
 */
import type { FastifyRequest } from 'fastify';

/** `localhost`, `127.0.0.1:8080`, `[::1]:8080`, … A name that any other machine could give itself is not among them. */
const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/i;

/**
 * Origin of the console as the client of this request sees it, or null when the request used a name that is not known to be
 * ours. `publicOrigin` is the configured one; without it only this machine's own addresses are served.
 */
export function consoleOrigin(request: FastifyRequest, publicOrigin: string | null): string | null {
  if (publicOrigin !== null) return publicOrigin;
  const { host } = request.headers;
  return host !== undefined && LOOPBACK.test(host) ? `http://${host.toLowerCase()}` : null;
}

/** Whether a browser sent this from another site's page, or something sent cookies without saying from where. */
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

/** A request that signs itself with a token, as a machine's agent does. It carries no cookies of a browser. */
export function hasBearer(request: FastifyRequest): boolean {
  return /^Bearer +\S/i.test(request.headers.authorization ?? '');
}
