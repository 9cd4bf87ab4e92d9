/** Paths as clients misspell them: slashes too many are dropped, and a base address that was put together wrongly is named. */

/**
 * The address with single slashes and none at the end of its path. The query stays as it is, and so do operators' paths: there, a
 * path may end in the name of a model, and an empty name is an error of its own.
 */
export function normalizeUrl(url: string): string {
  const end = url.search(/[?#]/);
  const path = end < 0 ? url : url.slice(0, end);
  // An absolute form (RFC 9112 section 3.2.2) is left to the router.
  if (!path.startsWith('/') || path.startsWith('/admin/')) return url;
  const clean = path.replace(/\/{2,}/g, '/').replace(/(?<=.)\/$/, '');
  return clean === path ? url : clean + url.slice(path.length);
}

/**
 * The API path that an unknown one was probably meant to be: `/chat/completions`, `/v1/v1/chat/completions` and
 * `/api/v1/chat/completions` are all `/v1/chat/completions`. `isKnown` says whether a path has a route. Null: none is near.
 */
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
