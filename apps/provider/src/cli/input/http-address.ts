/** The address of a coordinator as commands ask it over HTTP, from whichever way the owner wrote it. */
import { UsageError } from './owner-options.js';

/** Null where none was given. Throws {@link UsageError} where it is no address. */
export function httpAddress(text: string | boolean | undefined): string | null {
  if (typeof text !== 'string') return null;
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !/^(?:https?|wss?):$/.test(url.protocol)) throw new UsageError('the coordinator must be an http or https address.');
  return text.replace(/^ws/, 'http').replace(/\/+$/, '');
}
