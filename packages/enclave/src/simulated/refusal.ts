/** `Refusal` of the simulated helper; becomes the error reply. */
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
