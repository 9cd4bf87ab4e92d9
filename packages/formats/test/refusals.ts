import { RequestError } from '../src/index.js';

/** The error with which `parse` refuses a request. Throws if the request is accepted. */
export function refusalOf(parse: () => unknown): RequestError {
  try {
    parse();
  } catch (error) {
    if (error instanceof RequestError) return error;
    throw error;
  }
  throw new Error('the request was accepted');
}
