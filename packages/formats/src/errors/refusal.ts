/** Refuses known but unsupported features by name, because ignoring them would silently return wrong results. */
import { RequestError } from './errors.js';

/** Whether the value is neither null nor absent. */
export function isPresent<T>(value: T): value is NonNullable<T> {
  return value !== null && value !== undefined;
}

export function isFilled(list: readonly unknown[] | null | undefined): boolean {
  return isPresent(list) && list.length > 0;
}

/** Throws for a known, unsupported feature. */
export function refuse(param: string, message: string): never {
  throw new RequestError('unsupported_parameter', param, message);
}

/** Throws for a request that no service of this format accepts. */
export function reject(param: string, message: string): never {
  throw new RequestError('invalid_request', param, message);
}
