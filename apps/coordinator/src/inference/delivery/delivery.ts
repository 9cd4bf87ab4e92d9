/**
 * `Delivery` writes a job's response to its client: streams as they arrive, other responses after verification.
 *
 * Each attempt calls `begin`, `commit` and `push`…, then `withdraw` if another attempt follows. `deliver` or `fail` comes last, once.
 */
import type { ApiError, SignedParts } from '@inference/formats';
import type { Receipt } from '@inference/protocol';
import type { MicroUsd } from '../../billing/micro-usd.js';
import type { ProviderConnection } from '../../providers/provider-connection.js';
import type { Route } from '../request/job-routing.js';

/** Images that a provider sends separately from the signed response body. */
export interface Attachments {
  /** Hexadecimal SHA-256 of the signed bytes, or the fault of the received parts. */
  signedSha256(): { readonly sha256: string } | { readonly problem: `image.${string}` };
  /** Checks the attachments against a verified receipt. Returns the fault, or null. */
  verify(receipt: Receipt): Promise<'response_body' | `image.${string}` | `receipt.${string}` | null>;
  /** Stores the attachments for download, before the job is charged. Rejects on failure. */
  store(): Promise<void>;
}

export interface Delivery {
  /** Absent if the response consists of its signed bytes only. */
  readonly attachments?: Attachments;
  /** Whether the headers are sent. From then on no other provider can take over, and errors are sent inside the stream. */
  readonly isCommitted: boolean;
  /** Whether the client is slow, so that the provider has no credit left. */
  readonly isStalled: boolean;
  /** Content bytes that the client's connection has taken. */
  readonly delivered: number;
  /** Called when a provider starts on the job. `grant` returns credit for bytes taken. The headers describe `route`. */
  begin(provider: ProviderConnection, grant: (bytes: number) => void, route: Route): void;
  /** Sends a stream's headers before its first content. No effect on other responses. */
  commit(): void;
  /** Takes the next bytes of the response, received at `receivedAt` (`performance.now`). Returns false if too many or too slow. */
  push(bytes: Uint8Array, receivedAt: number): boolean;
  /** Undoes `begin` and `push`, because the provider failed before any byte was sent to the client. */
  withdraw(): void;
  /** Ends a verified response. `cost` is null if not known yet. */
  deliver(signed: SignedParts, cost: MicroUsd | null): void;
  fail(error: ApiError): void;
}
