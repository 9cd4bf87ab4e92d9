/**
 * `Delivery` writes a response to its client: streams on arrival, plain responses after verification.
 *
 * Calls: any number of (`begin`, `commit`, `push`…, `withdraw`), then `deliver` or `fail`, once.
 */
import type { ApiError, SignedParts } from '@inference/formats';
import type { Receipt } from '@inference/protocol';
import type { MicroUsd } from '../../billing/micro-usd.js';
import type { ProviderConnection } from '../../providers/provider-connection.js';
import type { Route } from '../request/job-routing.js';

/** Data beside the signed bytes: images named by the signed body. */
export interface Attachments {
  /** Hexadecimal SHA-256 of the signed bytes, or the fault of the received parts. */
  signedSha256(): { readonly sha256: string } | { readonly problem: `image.${string}` };
  /** Fault of the attachments, checked against a verified receipt; null: none. */
  verify(receipt: Receipt): Promise<'response_body' | `image.${string}` | `receipt.${string}` | null>;
  /** Stores attachments for download, before the job is charged. Rejects on failure. */
  store(): Promise<void>;
}

export interface Delivery {
  /** For responses with more than their signed bytes. */
  readonly attachments?: Attachments;
  /** Whether headers are sent: no other provider can take over, and errors go inside the stream. */
  readonly isCommitted: boolean;
  /** The client is slow, and the provider therefore out of credit. */
  readonly isStalled: boolean;
  /** Content bytes taken by the client's connection. */
  readonly delivered: number;
  /** A provider starts on the job. `grant` returns credit for drained bytes. `route`: provider and model of the job. */
  begin(provider: ProviderConnection, grant: (bytes: number) => void, route: Route): void;
  /** Sends a stream's headers before the first content, so that the client need not wait. No-op for plain answers. */
  commit(): void;
  /** The next bytes of the response, and their arrival time (`performance.now`). False: more bytes than a client may receive. */
  push(bytes: Uint8Array, receivedAt: number): boolean;
  /** The provider failed before anything was committed. */
  withdraw(): void;
  /** The response verified. `cost` in micro-USD; null: not known yet. */
  deliver(signed: SignedParts, cost: MicroUsd | null): void;
  fail(error: ApiError): void;
}
