/**
 * How a job's bytes reach its client. A stream writes them as they come; a plain answer holds them until they are verified.
 * Calls come in this order: any number of (`begin`, `accepted`, `push`…, `withdraw`), then `deliver` or `fail`, once.
 */
import type { ApiError, SignedParts } from '@inference/formats';
import type { OnlineSession } from '../fleet/provider-session.js';

export interface Delivery {
  /** Status and headers are out: no other provider can take over, and an error can only be told inside the stream. */
  readonly committed: boolean;
  /** The client does not take what was written; the provider is out of credit because of it. */
  readonly stalled: boolean;
  /** Content bytes handed to the client, or held for it. */
  readonly bytes: number;
  /** A provider starts on the job. `grant` returns credit to it as its bytes drain. */
  begin(session: OnlineSession, grant: (bytes: number) => void): void;
  accepted(): void;
  /** The next bytes of the response. False when they are more than a client may be sent. */
  push(bytes: Uint8Array): boolean;
  /** The provider failed before anything was committed. */
  withdraw(): void;
  /** Everything was verified. */
  deliver(signed: SignedParts): void;
  fail(error: ApiError): void;
}
