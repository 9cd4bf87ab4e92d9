/** Normalizes request paths, and suggests a known path for an unknown one, such as `/v1/models` for `/models`. */
import type { FastifyRequest } from 'fastify';

/** Path without the query. */
export function pathOf({ url }: FastifyRequest): string {
  return url.split(/[?#]/, 1)[0] ?? '';
}

/** Percent-encodings of letters, digits, `-`, `.`, `_` and `~`, which are equivalent to the characters (RFC 3986 section 6.2.2.2). */
const NEEDLESS_ESCAPE = /%(?:2[DE]|3\d|[46][1-9A-F]|[57][\dA]|5F|7E)/gi;

/**
 * Removes needless escapes, repeated and trailing slashes, and the origin of an absolute form (RFC 9112 section 3.2.2). Hooks compare
 * URLs, so each path must have one spelling.
 *
 * Admin paths retain their slashes, because an empty model id has its own error.
 */
export function normalizeUrl(target: string): string {
  const url = withoutOrigin(target);
  const end = url.search(/[?#]/);
  const given = end < 0 ? url : url.slice(0, end);
  const path = given.replace(NEEDLESS_ESCAPE, decodeURIComponent);
  const rest = url.slice(given.length);
  if (!path.startsWith('/')) return url;
  if (path.startsWith('/admin/')) return path + rest;
  return path.replace(/\/{2,}/g, '/').replace(/(?<=.)\/$/, '') + rest;
}

function withoutOrigin(target: string): string {
  const origin = /^https?:\/\/[^/?#]*/i.exec(target)?.[0];
  if (origin === undefined) return target;
  const rest = target.slice(origin.length);
  return rest.startsWith('/') ? rest : `/${rest}`;
}

/** Path under `/v1` that a client with a wrong base URL probably meant, or null. `isKnown` tells whether a path has a route. */
export function suggestPath(path: string, isKnown: (path: string) => boolean): string | null {
  if (path.length > 256 || !/^[\w/.:@-]+$/.test(path)) return null;
  const segments = path.split('/').filter((segment) => segment !== '');
  for (let from = 0; from < Math.min(segments.length, 8); from++) {
    const rest = segments.slice(from);
    const candidate = `/${(rest[0] === 'v1' ? rest : ['v1', ...rest]).join('/')}`;
    if (candidate !== path && isKnown(candidate)) return candidate;
  }
  return null;
}
