/** Helpers with which parsers reject requests. Unsupported features are refused, because ignoring them would return wrong results. */
import { RequestError } from './errors.js';

export function isPresent<T>(value: T): value is NonNullable<T> {
  return value !== null && value !== undefined;
}

export function isFilled(list: readonly unknown[] | null | undefined): boolean {
  return isPresent(list) && list.length > 0;
}

/** Throws `unsupported_parameter`: the format has the feature, but this service does not support it. */
export function refuse(param: string, message: string): never {
  throw new RequestError('unsupported_parameter', param, message);
}

/** Throws `invalid_request`: the request violates the format. */
export function reject(param: string, message: string): never {
  throw new RequestError('invalid_request', param, message);
}
