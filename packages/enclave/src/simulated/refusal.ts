/** `Refusal`: an error of the simulated helper that `answer` converts to an error reply. */
import type { HelperErrorCode } from '../contract/errors.js';

export class Refusal extends Error {
  constructor(
    readonly code: HelperErrorCode,
    message: string,
  ) {
    super(message);
    this.name = 'Refusal';
  }
}
