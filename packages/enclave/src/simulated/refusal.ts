/** Why the simulated helper does not do what it is asked; becomes the error of its reply. */
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
