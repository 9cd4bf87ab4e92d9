/** `?next=` of the sign-in page: the path to return to afterwards. */
import { PATHS } from './paths.js';

/** Path of the sign-in page with a return to `next`, a path of this console. */
export function signInPath(next: string): string {
  return `${PATHS.signIn}?next=${encodeURIComponent(next)}`;
}

/** Path in `?next=`, or `otherwise`. Rejects URLs of other origins (open redirect). */
export function nextPath(search: string, otherwise: string): string {
  const next = new URLSearchParams(search).get('next');
  if (next === null || !/^\/(?![/\\])/.test(next)) return otherwise;
  const url = new URL(next, window.location.origin);
  return url.origin === window.location.origin ? `${url.pathname}${url.search}` : otherwise;
}
