/** Functions with which parsers reject requests, and the tests for absent members. */
import { RequestError } from './errors.js';

/** Whether the member is given. `null` counts as absent. */
export function isPresent<T>(value: T): value is NonNullable<T> {
  return value !== null && value !== undefined;
}

export function isFilled(list: readonly unknown[] | null | undefined): boolean {
  return isPresent(list) && list.length > 0;
}

/**
 * Throws `unsupported_parameter`: the format has the feature, but this service does not support it.
 *
 * Ignoring such a feature instead could return a wrong result.
 */
export function rejectUnsupported(param: string, message: string): never {
  throw new RequestError('unsupported_parameter', param, message);
}

/** Throws `invalid_request`: the request violates the format. */
export function rejectInvalid(param: string, message: string): never {
  throw new RequestError('invalid_request', param, message);
}
