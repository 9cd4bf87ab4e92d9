/**
 * Known features that are not served are refused by name: an answer that silently left them out would look right and be
 * wrong. Fields that no format knows, the member tables refuse or name.
 */
import { RequestError } from './errors.js';

/** Not null and not absent. */
export function isGiven<T>(value: T): value is NonNullable<T> {
  return value !== null && value !== undefined;
}

export function isFilled(list: readonly unknown[] | null | undefined): boolean {
  return isGiven(list) && list.length > 0;
}

/** For a feature that is known and not served. */
export function refuse(param: string, message: string): never {
  throw new RequestError('unsupported_parameter', param, message);
}

/** For a request that no service of this format would take. */
export function reject(param: string, message: string): never {
  throw new RequestError('invalid_request', param, message);
}
