/** Paths of requests: removal of extra slashes, and suggestions for unknown paths, which wrongly composed base URLs cause. */
import type { FastifyRequest } from 'fastify';

/** Path without the query. */
export function pathOf({ url }: FastifyRequest): string {
  return url.split('?', 1)[0] ?? '';
}

/** Removes repeated and trailing slashes, but not in admin paths, whose empty model id has its own error. */
export function normalizeUrl(url: string): string {
  const end = url.search(/[?#]/);
  const path = end < 0 ? url : url.slice(0, end);
  // An absolute form (RFC 9112 section 3.2.2) is left to the router.
  if (!path.startsWith('/') || path.startsWith('/admin/')) return url;
  const clean = path.replace(/\/{2,}/g, '/').replace(/(?<=.)\/$/, '');
  return clean === path ? url : clean + url.slice(path.length);
}

/** API path that an unknown path probably meant, such as `/chat/completions`; null: none. `isKnown`: whether a path has a route. */
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
