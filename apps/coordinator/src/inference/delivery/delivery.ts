/**
 * `Delivery` writes a job's response to its client: streams as they arrive, other responses after verification.
 *
 * For each attempt, `begin` comes first, then `commit` and `push`, then `withdraw` if another attempt takes over. The last call, if any,
 * is `deliver` or `fail`.
 */
import type { ApiError, SignedParts } from '@inference/formats';
import type { Receipt } from '@inference/protocol';
import type { MicroUsd } from '../../billing/micro-usd.js';
import type { ProviderConnection } from '../../providers/provider-connection.js';
import type { Route } from '../request/job-routing.js';

/** Images of a plain-mode image response: inside its signed body, or received before the body and stored for download. */
export interface Attachments {
  /** Hexadecimal SHA-256 of the signed body, or the fault of the received parts. */
  signedSha256(): { readonly sha256: string } | { readonly problem: `image.${string}` };
  /** Checks the images against a verified receipt. Resolves to the fault, or null. */
  verify(receipt: Receipt): Promise<'response_body' | `image.${string}` | `receipt.${string}` | null>;
  /** Stores images for download, before the job is charged. Rejects on failure. */
  store(): Promise<void>;
}

export interface Delivery {
  /** Only for image responses. */
  readonly attachments?: Attachments;
  /** Whether the headers are sent. From then on no other provider can take over, and errors are sent inside the stream. */
  readonly isCommitted: boolean;
  /** Whether content waits for a slow client. The provider then gets no further credit. */
  readonly isStalled: boolean;
  /** Number of content bytes that the client's connection has taken. */
  readonly delivered: number;
  /** Called when a provider starts on the job. `grant` lets the provider send further bytes. The headers describe `route`. */
  begin(provider: ProviderConnection, grant: (bytes: number) => void, route: Route): void;
  /** Sends a stream's headers before its first content. No effect on other responses. */
  commit(): void;
  /** Takes the next bytes of the response, received at `receivedAt` (`performance.now`). Returns false if they are too many or too late. */
  push(bytes: Uint8Array, receivedAt: number): boolean;
  /** Discards pushed bytes, because the provider failed or another one takes over. No effect once bytes were sent to the client. */
  withdraw(): void;
  /** Ends a verified response, with its signature. `cost` is null if the charge is still pending. */
  deliver(signed: SignedParts, cost: MicroUsd | null): void;
  /** Ends the response with an error, inside the stream if it has begun. */
  fail(error: ApiError): void;
}
